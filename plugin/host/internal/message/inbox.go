package message

import (
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"unicode/utf8"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec that Codec extends
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
)

// partBytes is how much of a message is decoded at once. Items can be many times larger
// decoded than on the wire.
const partBytes = 1 << 20

// Inbox is a message from a process. It is decoded in parts, so that it never takes
// much more memory than it has bytes. Receive it on a stream with Codec.
type Inbox struct {
	whole *handlerv1.WorkResponse
	// parts is what Parts decodes; nil if whole is the message.
	parts mem.BufferSlice
	bytes int
}

// Bytes is the size of the message on the wire.
func (in *Inbox) Bytes() int { return in.bytes }

// Parts decodes the message, once. Outcomes come last. It cuts a text or value of more
// than longest bytes to longest+1.
func (in *Inbox) Parts(longest int) iter.Seq2[*handlerv1.WorkResponse, error] {
	return func(yield func(*handlerv1.WorkResponse, error) bool) {
		if in.parts == nil {
			yield(in.whole, nil)
			return
		}
		defer in.parts.Free()
		for _, outcomes := range []bool{false, true} {
			if !decode(in.parts, longest, outcomes, yield) {
				return
			}
		}
	}
}

// decode yields the outcomes of a message, or everything else. It returns false when
// the caller wants no more.
func decode(data mem.BufferSlice, longest int, outcomes bool, yield func(*handlerv1.WorkResponse, error) bool) bool {
	reader := data.Reader()
	defer func() { _ = reader.Close() }()
	cut := cutter{from: reader, longest: longest}
	fields := (*handlerv1.WorkResponse)(nil).ProtoReflect().Descriptor().Fields()
	part, size := new(handlerv1.WorkResponse), 0
	for reader.Remaining() > 0 {
		field, err := cut.field(fields, func(number protowire.Number) bool {
			return (number == protocol.ResponseOutcomes) == outcomes
		})
		if err == nil {
			err = proto.UnmarshalOptions{Merge: true, DiscardUnknown: true}.Unmarshal(field, part)
		}
		if err != nil {
			yield(nil, err)
			return false
		}
		if size += len(field); size >= partBytes {
			if !yield(part, nil) {
				return false
			}
			part, size = new(handlerv1.WorkResponse), 0
		}
	}
	return size == 0 || yield(part, nil)
}

// errMalformed means that a message is not protobuf.
var errMalformed = errors.New("the message cannot be read")

// cutter reads the fields of a message in wire format, and cuts texts and values that are
// too long.
type cutter struct {
	from    *mem.Reader
	longest int
	// depth is how deep the current message is nested.
	depth int
}

// maxValues is how many values are read of a list within an item, such as the follow-ups
// of an outcome: one more than can be accepted, so that too many can be seen. An empty one
// takes ten times as much memory as it has bytes on the wire.
const maxValues = MaxFollowUps + 1

// MaxFollowUps is how many follow-ups an operator can allow an attempt to submit.
const MaxFollowUps = 10_000

// maxDepth is larger than the nesting of the protocol's messages.
const maxDepth = 8

// field returns the next field in wire format; nil if it is unknown or unwanted.
func (c *cutter) field(of protoreflect.FieldDescriptors, wanted func(protowire.Number) bool) ([]byte, error) {
	tag, err := binary.ReadUvarint(c.from)
	if err != nil {
		return nil, errMalformed
	}
	number, kind := protowire.DecodeTag(tag)
	out := protowire.AppendTag(nil, number, kind)
	switch kind {
	case protowire.VarintType:
		value, err := binary.ReadUvarint(c.from)
		return protowire.AppendVarint(out, value), err
	case protowire.Fixed32Type:
		return c.read(out, 4)
	case protowire.Fixed64Type:
		return c.read(out, 8)
	case protowire.BytesType:
	default:
		return nil, errMalformed
	}
	size, err := binary.ReadUvarint(c.from)
	if err != nil || size > uint64(c.from.Remaining()) {
		return nil, errMalformed
	}
	known := of.ByNumber(number)
	switch {
	case known == nil || wanted != nil && !wanted(number):
		_, err := c.from.Discard(int(size))
		return nil, err
	case known.Message() != nil:
		inner, err := c.message(known.Message(), int(size))
		return protowire.AppendBytes(out, inner), err
	}
	keep := int(size)
	if keep > c.longest {
		keep = c.longest + 1
	}
	value, err := c.read(nil, keep)
	if err != nil {
		return nil, err
	}
	if keep < int(size) && known.Kind() == protoreflect.StringKind {
		value = wholeRunes(value)
	}
	_, err = c.from.Discard(int(size) - keep)
	return protowire.AppendBytes(out, value), err
}

// message reads a nested message of that size.
func (c *cutter) message(kind protoreflect.MessageDescriptor, size int) (out []byte, err error) {
	if c.depth++; c.depth > maxDepth {
		return nil, errMalformed
	}
	defer func() { c.depth-- }()
	end := c.from.Remaining() - size
	values := 0 // of the message's list
	for c.from.Remaining() > end {
		field, err := c.field(kind.Fields(), func(number protowire.Number) bool {
			if kind.Fields().ByNumber(number).IsList() {
				values++
			}
			return values <= maxValues
		})
		if err != nil {
			return nil, err
		}
		out = append(out, field...)
	}
	if c.from.Remaining() != end {
		return nil, errMalformed
	}
	return out, nil
}

func (c *cutter) read(out []byte, n int) ([]byte, error) {
	at := len(out)
	out = append(out, make([]byte, n)...)
	_, err := io.ReadFull(c.from, out[at:])
	return out, err
}

// wholeRunes drops an incomplete rune at the end.
func wholeRunes(text []byte) []byte {
	for range utf8.UTFMax - 1 {
		if r, size := utf8.DecodeLastRune(text); r != utf8.RuneError || size != 1 {
			break
		}
		text = text[:len(text)-1]
	}
	return text
}

// Codec is gRPC's own codec, except for a Request, and for messages that are received into an Inbox.
type Codec struct{ encoding.CodecV2 }

// NewCodec returns the codec for a Work stream.
func NewCodec() Codec { return Codec{encoding.GetCodecV2("proto")} }

// Marshal implements encoding.CodecV2.
func (c Codec) Marshal(v any) (mem.BufferSlice, error) {
	if request, ok := v.(Request); ok {
		return mem.BufferSlice{mem.SliceBuffer(request)}, nil
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal implements encoding.CodecV2.
func (c Codec) Unmarshal(data mem.BufferSlice, v any) error {
	in, ok := v.(*Inbox)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	*in = Inbox{bytes: data.Len()}
	if in.bytes <= partBytes {
		buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
		defer buffer.Free()
		if in.whole = readSuccesses(buffer.ReadOnlyData()); in.whole != nil {
			return nil
		}
		in.whole = new(handlerv1.WorkResponse)
		return c.CodecV2.Unmarshal(mem.BufferSlice{buffer}, in.whole)
	}
	data.Ref()
	in.parts = data
	return nil
}
