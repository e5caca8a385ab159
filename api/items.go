package api

// item is one submission of a batch, as it was sent.
type item struct {
	// text is good until the next item is read.
	text  []byte
	start spot
	// tooLong says that the text is cut short.
	tooLong bool
}

// items are read one after the other.
type items interface {
	// next returns io.EOF after the last item, and an answer when the body is
	// broken or cannot be read.
	next() (item, error)
}

// readAtOnce is how much of a body is read at a time.
const readAtOnce = 64 << 10

// charged are items that a batch keeps until all of them are there. Its share is
// charged for what is kept of each beside its text.
type charged struct {
	items
	share *share
}

// itemBytes is about what a decoded submission takes, and the answer to it.
const itemBytes = 512

func (c charged) next() (item, error) {
	next, err := c.items.next()
	if err == nil {
		err = c.share.hold(itemBytes)
	}
	return next, err
}
