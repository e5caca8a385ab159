package job

import "time"

// Admission is what one round of the admitter did.
type Admission struct {
	// Admitted jobs were put on the ready list.
	Admitted []Admitted
	// Moved is how many jobs wait in another lane now.
	Moved int
	// Canceled jobs have ended: newcomers whose key was full, and waiting jobs that had to
	// make room for one.
	Canceled []ID
	// CancelAsked is how many running jobs were asked to stop.
	CancelAsked int
	// More says that there is work for another round already.
	More bool
	// NextIn is how long until a gate must be looked at again although nothing happens
	// before; 0 for none.
	NextIn time.Duration
}

// Admitted is a job that has passed its gates.
type Admitted struct {
	ID   ID
	Type string
	// Lane is the gate where it waited last.
	Lane Gate
	// Waited is how long it was parked.
	Waited time.Duration
}
