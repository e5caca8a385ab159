package job

import "slices"

// Surroundings are what a process must know of the others.
type Surroundings struct {
	// Live are the live processes, this one included, without those that are asked to take no
	// more jobs.
	Live []Peers
	// Neighbours are the other workers on the same host that have not signed off and may still
	// hold leases.
	Neighbours []Worker
	// LeaseExpired says that an attempt waits to be taken over.
	LeaseExpired bool
	// TypesVersion changes when a job type is declared or changes.
	TypesVersion int64
}

// Peers are live processes with the same roles that serve the same job types.
type Peers struct {
	Processes int
	Roles     Roles
	// Types are sorted; nil without the role of a worker.
	Types []string
}

// Crowd is how many live processes, this one included, can do what this one does.
type Crowd struct {
	// Workers can run each of the types that this one serves: as many as the type has that
	// fewest serve.
	Workers int
	// Maintainers maintain.
	Maintainers int
	// All are processes of any role.
	All int
}

// CrowdOf counts those who can do the same as a process that serves these types. Each number
// is at least 1.
func CrowdOf(live []Peers, types []string) Crowd {
	crowd := Crowd{Workers: 1}
	for _, peers := range live {
		crowd.All += peers.Processes
		if peers.Roles.Has(RoleMaintenance) {
			crowd.Maintainers += peers.Processes
		}
	}
	crowd.All, crowd.Maintainers = max(crowd.All, 1), max(crowd.Maintainers, 1)
	for i, jobType := range types {
		serve := 0
		for _, peers := range live {
			if _, serves := slices.BinarySearch(peers.Types, jobType); serves && peers.Roles.Has(RoleWorker) {
				serve += peers.Processes
			}
		}
		if serve = max(serve, 1); i == 0 || serve < crowd.Workers {
			crowd.Workers = serve
		}
	}
	return crowd
}
