package job

// TreeFilter chooses a part of the tree of a job: the jobs that it has submitted, those that
// these have submitted, and so on.
type TreeFilter struct {
	// FromRoot begins at the job's first ancestor, instead of the job itself.
	FromRoot bool
	// Depth is how many generations to show below the first job; at least 1.
	Depth int
	// Limit bounds the jobs; at least 1.
	Limit int
}

// MaxTreeDepth is how many ancestors are followed at most, and generations below.
const MaxTreeDepth = 1000

// Tree is a job with those that descend from it.
type Tree struct {
	// Jobs are in the order of their generations, then of their creation. The first one is
	// the ancestor of all others.
	Jobs []TreeJob
	// Truncated says that there are more than the filter allows.
	Truncated bool
}

// TreeJob is a job of a tree.
type TreeJob struct {
	View
	// Parent submitted it; the zero id for none. That of the first job is not in the tree.
	Parent ID
	// Depth counts the generations from the first job, which has 0.
	Depth int
}
