// SPDX-License-Identifier: Apache-2.0
// Sends one message as gRPC, and prints the answer: node grpc_client.js URL PATH FILE [ENCODING]
const { readFileSync } = require("node:fs");
const { connect } = require("node:http2");

const [url, path, file, encoding] = process.argv.slice(2);
const session = connect(url);
const request = session.request({
  ":method": "POST",
  ":path": path,
  "content-type": "application/grpc",
  te: "trailers",
  ...(encoding ? { "grpc-encoding": encoding } : {}),
});
const answer = { status: 0, trailers: {}, body: "" };
request.on("response", (headers) => (answer.status = headers[":status"]));
request.on("trailers", (trailers) => (answer.trailers = trailers));
request.on("data", (data) => (answer.body += data.toString("hex")));
request.on("end", () => {
  console.log(JSON.stringify(answer));
  session.close();
});
request.end(readFileSync(file));
