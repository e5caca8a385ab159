package plugin

import (
	"fmt"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

// caps are the largest values that the orchestrator takes, in bytes of JSON.
type caps struct{ progress, checkpoint, result int }

// capsOf reads what the orchestrator says. One that says nothing takes what a
// message holds.
func capsOf(said *handlerv1.DescribeRequest) caps {
	read := func(most uint64) int {
		if most == 0 || most > maxValue {
			return maxValue
		}
		return int(most)
	}
	return caps{
		progress: read(said.GetMaxProgressBytes()), checkpoint: read(said.GetMaxCheckpointBytes()),
		result: read(said.GetMaxResultBytes()),
	}
}

// tooLarge is a value that has more bytes than its cap.
type tooLarge struct{ bytes, most int }

func (e *tooLarge) Error() string {
	return fmt.Sprintf("%d bytes of JSON are more than %d", e.bytes, e.most)
}

// within returns an error for a value above its cap.
func within(encoded []byte, most int) error {
	if len(encoded) > most {
		return &tooLarge{bytes: len(encoded), most: most}
	}
	return nil
}
