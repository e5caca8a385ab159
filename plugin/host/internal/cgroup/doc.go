// Package cgroup gives each plugin process its own control group (cgroup v2). It contains
// everything that the process forks, in any session or environment: the kernel bounds
// their sum, and kills them all at once.
//
//	parent        where groups may be made: configured, or found by Open
//	└ hf-1234     a Tree: one for each host, named after its directory
//	  └ 5678      a Group: one for each plugin process
//
// If the parent does not have a controller, its limit is not enforced here. A group
// without any controller still knows its members and kills them.
package cgroup
