# SPDX-License-Identifier: Apache-2.0
"""Processes of an experiment: started, watched, stopped, and never left behind."""
