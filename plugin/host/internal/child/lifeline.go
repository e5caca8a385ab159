package child

import "os"

// lifeline is the pipe that is the standard input of a process. Nothing is ever
// written to it. That its writing end is open means that the process is needed.
type lifeline struct {
	// read stays open here too: the process may close its own, or die of the
	// parent-death signal an instant before the pipe hangs up. It must be the
	// lower of the two descriptors, as os.Pipe makes it, for the kernel
	// releases those of a killed process from the highest down.
	read, write *os.File
}

// tie makes the process group end with the orchestrator.
func (l *lifeline) tie(group int) { killGroupAtHangup(l.read, group) }

// cut tells the process that it is not needed, without killing it.
func (l *lifeline) cut() {
	spareGroupAtHangup(l.read)
	closeAll(l.write, l.read)
}
