# SPDX-License-Identifier: Apache-2.0
"""The configuration of the nginx that tests start; all its files lie in its own folder."""

import os

# As root the worker would become nobody, who may not enter a test's folder.
USER = "user root;" if os.geteuid() == 0 else ""


def configuration(*servers: str) -> str:
    """One worker with these `server` blocks; a connection is kept for any number of requests."""
    return f"""
{USER}
daemon off;
worker_processes 1;
pid nginx.pid;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  keepalive_requests 1000000000;
  {" ".join(servers)}
}}
"""
