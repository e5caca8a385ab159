package bench

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// sampling gives the jobs of a backlog the trace contexts that the API would have given them,
// with the same settings.
type sampling struct {
	// on says that there is a collector. Without one, jobs have no context.
	on bool
	// ratio is the share of the jobs whose trace is sampled.
	ratio float64
}

// samplingBy reads the settings, as key=value.
func samplingBy(settings []string) sampling {
	s := sampling{ratio: 1}
	for _, setting := range settings {
		switch key, value, _ := strings.Cut(setting, "="); key {
		case "tracing.endpoint":
			s.on = value != ""
		case "tracing.sample_ratio":
			if ratio, err := strconv.ParseFloat(value, 64); err == nil { // The orchestrator refuses others.
				s.ratio = ratio
			}
		}
	}
	return s
}

// of returns the context of the job with a number, from 0. Those that are sampled are spread
// evenly.
func (s sampling) of(number int) job.Trace {
	if !s.on {
		return job.Trace{}
	}
	flags := "00"
	if int(float64(number+1)*s.ratio) > int(float64(number)*s.ratio) {
		flags = "01"
	}
	id, span := uuid.New(), uuid.New()
	return job.Trace{Parent: fmt.Sprintf("00-%s-%s-%s", hex.EncodeToString(id[:]), hex.EncodeToString(span[:8]), flags)}
}
