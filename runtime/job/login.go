package job

import (
	"errors"
	"time"
)

// ErrNoLogin says that there is no such session or link, or that its time is over.
var ErrNoLogin = errors.New("no such login")

// Login says who has logged in: the session of a browser, or a link that begins one.
type Login struct {
	// Digest is the SHA-256 of the secret that the browser or the link has.
	Digest [32]byte
	// Caller is who it is, by name.
	Caller string
	// Binding ties it to the password or the token of the caller, without revealing that: only
	// who has the secret can compute it.
	Binding []byte
	// Lasts is how much longer it is valid.
	Lasts time.Duration
}
