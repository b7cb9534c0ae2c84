# SPDX-License-Identifier: Apache-2.0
"""Both ends of the connection between this host and a virtual machine."""
