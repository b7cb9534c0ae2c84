# SPDX-License-Identifier: Apache-2.0
"""One run from its start to the service that is ready: the service, its proxies and agents."""
