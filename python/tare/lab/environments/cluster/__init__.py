# SPDX-License-Identifier: Apache-2.0
"""Pods in a Kubernetes cluster: their manifest, their files, and the programs in them."""
