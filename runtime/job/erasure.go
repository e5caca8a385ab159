package job

import (
	"errors"
	"time"
)

// ErrErased says that the job was erased, so that it cannot run again. Nothing was written.
var ErrErased = errors.New("the job was erased")

// ErrNoErasure says that there is no erasure of that id.
var ErrNoErasure = errors.New("no such erasure")

// Erasure is a request to blank all ended jobs of a tenant that were there when it was made.
type Erasure struct {
	ID     ID
	Tenant string
	Reason string
	// By is who asked: the user who logged in, or a token by its name.
	By      string
	AskedAt time.Time
	// Erased and Open count the jobs that it has blanked, and those that it left because they
	// had not ended when it came to them.
	Erased, Open int64
	UpdatedAt    time.Time
	FinishedAt   *time.Time // nil until it has looked at all jobs
}

// ErasureFilter chooses erasures. Zero fields are no restriction.
type ErasureFilter struct {
	ID     ID
	Tenant string
	// Limit bounds how many are returned; at least 1.
	Limit int
}
