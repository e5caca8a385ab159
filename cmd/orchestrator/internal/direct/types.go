package direct

import (
	"context"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// reloadTypes bounds how old what is known of job types may be; missTypes is
// the same for a type that is not known.
const (
	reloadTypes = 30 * time.Second
	missTypes   = 250 * time.Millisecond
)

// TypeSpec is what workers have written to the database about the type.
func (j *Jobs) TypeSpec(ctx context.Context, jobType string) (job.TypeSpec, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	spec, known := j.types[jobType]
	age := time.Since(j.loaded)
	if age > reloadTypes || !known && age > missTypes {
		specs, err := j.Types(ctx)
		if err != nil {
			return job.TypeSpec{}, err
		}
		j.types, j.loaded = make(map[string]job.TypeSpec, len(specs)), time.Now()
		for _, spec := range specs {
			j.types[spec.Type] = spec
		}
		spec, known = j.types[jobType]
	}
	switch {
	case known:
		return spec, nil
	case j.accept != nil:
		return j.accept(jobType), nil
	}
	return job.TypeSpec{}, job.ErrUnknownType
}
