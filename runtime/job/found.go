package job

import "time"

// Found is a job in a list for operators.
type Found struct {
	View
	Tags     []string
	Priority int16
	// RunAt is when the job is or was due; zero for a held job.
	RunAt time.Time
	// Charged counts the charged attempts, including the running one.
	Charged     int
	MaxAttempts int
	// Worker is the last owner; empty for none.
	Worker string
	// Code is the error code of the last attempt that has ended; empty for none.
	Code string
	// LastError is the first line of the last error, at most MaxFoundError characters of it.
	LastError string
}

// MaxFoundError bounds the error of a job in a list, in characters.
const MaxFoundError = 200

// FoundPage is a part of a list of jobs for operators. Like a Page, it can be short.
type FoundPage struct {
	Jobs []Found
	// Next is the After of the next page; zero on the last page.
	Next ID
}

// Lookup names jobs.
type Lookup struct {
	// ID is the id of a job; zero for none.
	ID ID
	// Key is an idempotency key; empty for none.
	Key string
	// Tenant is whose jobs to look at; empty for those of all tenants, but keys of the first
	// MaxLookupTenants only.
	Tenant string
	// Limit bounds how many are returned; at least 1.
	Limit int
}

// MaxLookupTenants bounds among how many tenants a key is looked up.
const MaxLookupTenants = 10_000
