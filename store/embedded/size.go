package embedded

import "fmt"

const mebibyte = 1 << 20

// machine is what the server runs on, in bytes; zero where it is not known.
type machine struct {
	memory uint64
	disk   uint64 // of the file system, free or not
}

// settings are those that follow from the machine: a quarter of its memory for
// the cache and a tenth of its disk for the log, neither so little that every
// page is written again and again, nor more than pays.
func (m machine) settings() map[string]string {
	follow := map[string]string{}
	if m.memory > 0 {
		follow["shared_buffers"] = megabytes(m.memory/4, 128, 512)
	}
	if m.disk > 0 {
		follow["max_wal_size"] = megabytes(m.disk/10, 256, 2048)
	}
	return follow
}

// megabytes is a size as PostgreSQL reads it, between the bounds.
func megabytes(size, least, most uint64) string {
	return fmt.Sprintf("%dMB", min(max(size/mebibyte, least), most))
}
