package store

// leastConnections is one connection for each pool of a Division.
const leastConnections = 3

// Division says how many connections each pool may open. Together they are
// Config.MaxConnections.
type Division struct {
	Worker, Submissions, Reads int32
}

// Divide divides the connections: three tenths each for submissions and for
// reads, at least one, and the rest for the worker, which has the most loops.
// Less than 3 connections count as 3.
func Divide(connections int32) Division {
	connections = max(connections, leastConnections)
	share := max(connections*3/10, 1)
	return Division{Worker: connections - 2*share, Submissions: share, Reads: share}
}
