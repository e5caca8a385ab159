//go:build !linux

package conformance

// findsOrphans: only Linux can find what a process leaves behind.
const findsOrphans = false

func adoptOrphans() (undo func()) { return func() {} }

func descendants() map[int]string { return nil }

func (p *process) alive() []int { return nil }

func (p *process) leftBehind() []string { return nil }
