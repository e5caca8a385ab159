package show

import (
	"fmt"
	"math"
)

// Bytes is a number of bytes for people.
func Bytes(bytes int64) string {
	units := []string{"B", "kB", "MB", "GB", "TB"}
	value, unit := float64(bytes), 0
	for ; value >= 1000 && unit < len(units)-1; unit++ {
		value /= 1000
	}
	if unit == 0 || value >= 100 {
		return fmt.Sprintf("%.0f %s", math.Round(value), units[unit])
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}
