package capacity

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
	"github.com/holdfast-jobs/holdfast/plugin/host"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// MaxPayload is how many bytes the payload and the result of a job can have together: as many
// as the configuration can allow each.
const MaxPayload = config.MostBodyBytes + host.MaxCap

var quantity = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]*)$`)

var bytesIn = map[string]float64{
	"": 1, "B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}

// ParseBytes reads a size such as 500, 2kB or 1MiB.
func ParseBytes(text string) (int64, error) {
	parts := quantity.FindStringSubmatch(text)
	if parts == nil || bytesIn[parts[2]] == 0 {
		return 0, fmt.Errorf("%q is no size; write 500, 2kB, 64KiB or 1MB", text)
	}
	n, err := strconv.ParseFloat(parts[1], 64)
	if n *= bytesIn[parts[2]]; err != nil || n > MaxPayload { // the error is that it is out of range
		return 0, fmt.Errorf("%q is too large: a payload has at most %dMiB (server.max_body_bytes), a result %dMiB (jobs.max_result_bytes), so write at most %dMiB",
			text, config.MostBodyBytes>>20, host.MaxCap>>20, MaxPayload>>20)
	}
	return int64(math.Round(n)), nil
}

const day = 24 * time.Hour

// ParseKept reads how long jobs are kept, such as 12h or 30d. It has the bounds of retention.
func ParseKept(text string) (time.Duration, error) {
	if text == string(config.Keep) {
		return 0, fmt.Errorf("what is kept for ever (%s) grows without end; write how long you want to look ahead, such as 365d", config.Keep)
	}
	kept, err := parseTime(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is no time; write 12h or 30d", text)
	case kept < config.LeastKept:
		return 0, fmt.Errorf("%q is too short: retention keeps jobs for at least 1m", text)
	case kept > config.MostKept:
		return 0, fmt.Errorf("%q is too long: retention keeps jobs for at most %s, or for ever", text, job.ShortDuration(config.MostKept))
	}
	return kept, nil
}

// parseTime also reads days, which time.ParseDuration does not.
func parseTime(text string) (time.Duration, error) {
	parts := quantity.FindStringSubmatch(text)
	if parts == nil || parts[2] != "d" {
		return time.ParseDuration(text)
	}
	days, err := strconv.ParseFloat(parts[1], 64)
	if days > 2*float64(config.MostKept/day) { // so that it does not overflow
		return 2 * config.MostKept, nil
	}
	return time.Duration(days * float64(day)), err
}
