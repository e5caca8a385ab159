package main

import "runtime"

// heapFloor is by how much the heap may grow at least before it is collected,
// in bytes. A worker keeps little and throws much away: at the runtime's own
// pace, every few megabytes, collecting took a fifth of its CPU.
const heapFloor = 32 << 20

// raiseHeapFloor makes it so until release is called: by an allocation that the
// collector counts and nobody touches, so that it takes no memory. A higher
// GOGC would multiply what large requests may keep as well.
func raiseHeapFloor() (release func()) {
	untouched := make([]byte, heapFloor)
	return func() { runtime.KeepAlive(untouched) }
}
