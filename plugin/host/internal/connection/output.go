package connection

import (
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/emptypb"
)

// maxChunk is larger than what go-plugin sends at once, 1 KiB.
const maxChunk = 1 << 20

// relayOutput reads what the plugin prints after the handshake. A go-plugin server
// sends that over the connection, and handlers that print would block if nobody read
// it. Processes without this service print to their standard files.
func (p *Process) relayOutput() {
	stdout, stderr := p.child.Output().From("stdout"), p.child.Output().From("stderr")
	stream, err := p.conn.NewStream(p.stream.Context(), &grpc.StreamDesc{ServerStreams: true}, "/plugin.GRPCStdio/StreamStdio",
		grpc.MaxCallRecvMsgSize(maxChunk))
	if err != nil {
		return
	}
	if stream.SendMsg(&emptypb.Empty{}) != nil || stream.CloseSend() != nil {
		return
	}
	for {
		// go-plugin does not export its message type. An empty message holds
		// any other as unknown fields.
		chunk := &emptypb.Empty{}
		if stream.RecvMsg(chunk) != nil {
			stdout.Flush()
			stderr.Flush()
			return
		}
		switch channel, data := readChunk(chunk.ProtoReflect().GetUnknown()); channel {
		case 1:
			_, _ = stdout.Write(data)
		case 2:
			_, _ = stderr.Write(data)
		}
	}
}

// readChunk parses StdioData: the channel, 1 for stdout and 2 for stderr, in
// field 1, the bytes in field 2.
func readChunk(raw []byte) (channel uint64, data []byte) {
	for len(raw) > 0 {
		number, kind, size := protowire.ConsumeField(raw)
		if size < 0 {
			return 0, nil
		}
		value := raw[protowire.SizeTag(number):size]
		switch {
		case number == 1 && kind == protowire.VarintType:
			channel, _ = protowire.ConsumeVarint(value)
		case number == 2 && kind == protowire.BytesType:
			data, _ = protowire.ConsumeBytes(value)
		}
		raw = raw[size:]
	}
	return channel, data
}
