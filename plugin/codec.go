package plugin

import (
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec that codec extends
	"google.golang.org/grpc/mem"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

// codec is gRPC's own codec, except for the two kinds of messages that every job needs: requests of
// readStarts, and responses of writeSuccesses.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if response, ok := v.(*handlerv1.WorkResponse); ok {
		if written := writeSuccesses(response); written != nil {
			return mem.BufferSlice{mem.SliceBuffer(written)}, nil
		}
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	request, ok := v.(*handlerv1.WorkRequest)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	// A buffer of gRPC's pool for more than 32 KiB has 1 MiB, and is cleared each time.
	message := data.Materialize()
	if starts, ok := readStarts(message); ok {
		request.Starts = starts
		return nil
	}
	return c.CodecV2.Unmarshal(mem.BufferSlice{mem.SliceBuffer(message)}, request)
}
