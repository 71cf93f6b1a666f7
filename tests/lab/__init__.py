# SPDX-License-Identifier: Apache-2.0
"""The laboratory of the integration and fault tests: real peers, scripted peers, and what watches
them.

process    child processes, free ports, waiting for a condition (never for a time)
spillway   the proxy under test: configuration in, metrics and control out, clean end asserted
http       raw HTTP/1.1 client, scripted origin that records every byte, nginx
rpc        raw ONC RPC and NFS calls, a scripted RPC server
nfs        a private network: rpcbind, nfs-ganesha, a real kernel client in user-mode Linux
"""
