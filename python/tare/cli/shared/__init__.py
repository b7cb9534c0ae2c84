# SPDX-License-Identifier: Apache-2.0
"""What several commands share: options, output, progress. It imports no command."""
