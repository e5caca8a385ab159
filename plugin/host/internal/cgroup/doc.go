// Package cgroup gives each handler process a control group (cgroup v2) of its
// own, which holds everything that the process forks, whatever session or
// environment that takes: the kernel bounds their sum and kills them all at once.
//
//	parent        where we may make groups: configured, or found by Open
//	└ hf-1234     a Tree: one for each host, named after its directory
//	  └ 5678      a Group: one for each handler process
//
// A controller that the parent does not have leaves that limit to others; a
// group without any still knows and kills its members.
package cgroup
