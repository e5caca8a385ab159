// Package embedded finds, starts and stops a PostgreSQL server of its own, so
// that the orchestrator runs without any set-up. It is a real server from the
// binaries installed on the machine (version 14 or newer), else from a Docker
// image, and the data is as durable as with any other PostgreSQL.
//
// The directory of Config.DataDir, the home, holds everything:
//
//	data/          the cluster, made once by initdb
//	.s.PGSQL.5432  the socket, the only way in (a longer path than sockets
//	               allow moves it to a short directory under /tmp)
//	server.lock    held by the server's processes while one of them lives
//	container/     the cluster in place of data/ where Docker runs it, with its
//	               password; such a home needs Docker from then on
//
// The home belongs to the user that runs the server and only that user (and
// root) can enter it, which is why the server trusts every local connection.
//
// What survives what: after Stop the cluster is at rest. When the process that
// called Start dies in any way, the kernel tells the server to shut down
// (Linux only); the next Start waits until that is over. When the machine
// dies, the next Start recovers from the write-ahead log.
package embedded
