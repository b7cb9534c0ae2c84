// SPDX-License-Identifier: Apache-2.0
// A module of its own, so that go.sum pins what fortio is made of.
module tare/peers/fortio

go 1.24

tool fortio.org/fortio

require (
	fortio.org/fortio v1.38.4 // indirect
	github.com/fsnotify/fsnotify v1.6.0 // indirect
	github.com/golang/protobuf v1.5.2 // indirect
	github.com/google/uuid v1.3.0 // indirect
	golang.org/x/exp v0.0.0-20221111204811-129d8d6c17ab // indirect
	golang.org/x/net v0.2.0 // indirect
	golang.org/x/sys v0.2.0 // indirect
	golang.org/x/text v0.4.0 // indirect
	google.golang.org/genproto v0.0.0-20220714211235-042d03aeabc9 // indirect
	google.golang.org/grpc v1.50.0 // indirect
	google.golang.org/protobuf v1.28.0 // indirect
)
