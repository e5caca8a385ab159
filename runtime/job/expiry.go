package job

import "time"

// CodeExpired is the code of an attempt that was claimed too late to be started.
const CodeExpired = "expired"

// Lapsed is a job that was canceled because it had not started in time.
type Lapsed struct {
	ID     ID
	Type   string
	Tenant string
	// Reason is what the job's last error says from now on.
	Reason string
	// Freed says that slots of the job's gates are free now.
	Freed bool
	// Trace is the context that the job carries.
	Trace Trace
}

// LapsedReason says why a job with that expiry was canceled. The database says the same of
// the jobs that it cancels itself.
func LapsedReason(expiresAt time.Time) string {
	return "expired at " + expiresAt.UTC().Format("2006-01-02T15:04:05.000Z") + ": it had not started"
}
