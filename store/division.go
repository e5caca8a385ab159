package store

// leastConnections is one connection for each pool of a division.
const leastConnections = 3

// A division says how many connections each pool may open. Together they are
// Config.MaxConnections.
type division struct {
	Worker, Submissions, Reads int32
}

// divide divides the connections: three tenths each for submissions and for
// reads, at least one, and the rest for the worker, which has the most loops.
// Less than 3 connections count as 3.
func divide(connections int32) division {
	connections = max(connections, leastConnections)
	share := max(connections*3/10, 1)
	return division{Worker: connections - 2*share, Submissions: share, Reads: share}
}
