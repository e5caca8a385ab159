package api

import (
	"context"
	"fmt"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// maxTreeJobs is how many jobs of a tree are shown.
	maxTreeJobs = 1000
	// usualDepth is how many generations are shown if the client does not say.
	usualDepth = 100
)

type treeInput struct {
	call
	ID    job.ID     `path:"id" format:"uuid" doc:"The jobId that the submission returned."`
	Root  bool       `query:"root" default:"false" doc:"Begin at the first ancestor of the job instead of the job itself."`
	Depth depthParam `query:"depth" doc:"How many generations to show below the first job, from 1 to 1000. The default is 100."`
}

// depthParam is a number of generations; 0 for the default.
type depthParam struct{ n int }

// UnmarshalText accepts a whole number.
func (p *depthParam) UnmarshalText(text []byte) error {
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 1 || n > job.MaxTreeDepth {
		return fmt.Errorf("must be a whole number from 1 to %d", job.MaxTreeDepth)
	}
	p.n = n
	return nil
}

// Schema describes the number.
func (depthParam) Schema(huma.Registry) *huma.Schema {
	least, most := 1.0, float64(job.MaxTreeDepth)
	return &huma.Schema{Type: huma.TypeInteger, Minimum: &least, Maximum: &most}
}

// tree shows a job with its descendants. All of them are of the job's tenant.
func (j *jobRoutes) tree(ctx context.Context, in *treeInput) (*body[v1.JobTree], error) {
	if err := mayTouch(ctx, j.jobs, in.ID); err != nil {
		return nil, err
	}
	depth := in.Depth.n
	if depth == 0 {
		depth = usualDepth
	}
	tree, err := j.jobs.Tree(ctx, in.ID, job.TreeFilter{FromRoot: in.Root, Depth: depth, Limit: maxTreeJobs})
	return bodyOf(tree, err, v1.JobTreeOf)
}
