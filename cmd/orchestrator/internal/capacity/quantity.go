package capacity

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"
)

var quantity = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]*)$`)

var bytesIn = map[string]float64{
	"": 1, "B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "KiB": 1 << 10, "MiB": 1 << 20,
}

// ParseBytes reads a size such as 500, 2kB or 1MiB.
func ParseBytes(text string) (int64, error) {
	parts := quantity.FindStringSubmatch(text)
	if parts == nil || bytesIn[parts[2]] == 0 {
		return 0, fmt.Errorf("%q is no size; write 500, 2kB, 64KiB or 1MB", text)
	}
	n, err := strconv.ParseFloat(parts[1], 64)
	if err != nil {
		return 0, err
	}
	if n *= bytesIn[parts[2]]; n > 1<<30 {
		return 0, errors.New("no payload has more than 1 GB")
	}
	return int64(math.Round(n)), nil
}

const day = 24 * time.Hour

// ParseTime reads a duration such as 12h or 30d.
func ParseTime(text string) (time.Duration, error) {
	if parts := quantity.FindStringSubmatch(text); parts != nil && parts[2] == "d" {
		days, err := strconv.ParseFloat(parts[1], 64)
		if err == nil && days <= 36_500 {
			return time.Duration(days * float64(day)), nil
		}
		return 0, fmt.Errorf("%q is more than a hundred years", text)
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is no time; write 12h or 30d", text)
	}
	return d, nil
}
