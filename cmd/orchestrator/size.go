package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// byteSize is a number of bytes, written with a unit: 512MiB, 2GB.
type byteSize uint64

var units = []struct {
	name  string
	bytes uint64
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"kB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"B", 1},
}

// UnmarshalText reads a whole number and a unit.
func (s *byteSize) UnmarshalText(text []byte) error {
	for _, unit := range units {
		digits, found := strings.CutSuffix(string(text), unit.name)
		if !found {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 64)
		if err != nil || n > math.MaxInt64/unit.bytes {
			break
		}
		*s = byteSize(n * unit.bytes)
		return nil
	}
	return fmt.Errorf("%q is not a size such as 512MiB", text)
}
