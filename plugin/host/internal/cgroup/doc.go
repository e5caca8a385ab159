// Package cgroup gives each plugin process its own control group (cgroup v2). The group
// contains everything that the process forks, in any session or environment. The kernel
// bounds what the members use together, and kills them all at once.
//
//	parent        where groups may be made: configured, or found by Open
//	└ hf-1234     a Tree: one for each host, named after its directory
//	  └ 5678      a Group: one for each plugin process
//
// If the parent lacks a controller, the limit for that controller is not enforced here.
// A group without any controller still knows its members and kills them.
package cgroup
