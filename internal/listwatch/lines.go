package listwatch

import (
	"bufio"
	"errors"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
)

// lines takes the events of a watch to be its lines, which is how API servers write JSON: a newline ends each, and there is none in it.
type lines struct{ runtime.Framer }

// NewFrameReader gives a reader of which every read is of one line, or of a part of it, with io.ErrShortBuffer, if it is longer than
// what it is read into.
func (lines) NewFrameReader(r io.ReadCloser) io.ReadCloser {
	return &lineReader{Closer: r, from: bufio.NewReaderSize(r, 32<<10)}
}

type lineReader struct {
	io.Closer
	from *bufio.Reader
	line []byte // what is left of the line that is being read
	long []byte // room for lines longer than the buffer
}

func (r *lineReader) Read(into []byte) (int, error) {
	if len(r.line) == 0 {
		line, err := r.next()
		if err != nil {
			return 0, err
		}
		r.line = line
	}
	n := copy(into, r.line)
	r.line = r.line[n:]
	if len(r.line) > 0 {
		return n, io.ErrShortBuffer
	}
	return n, nil
}

// next is the next line, until it is called again. A line that ends without a newline is cut off, unless it is empty.
func (r *lineReader) next() ([]byte, error) {
	r.long = r.long[:0]
	for {
		part, err := r.from.ReadSlice('\n')
		switch {
		case err == nil && len(r.long) == 0:
			return part, nil
		case err == nil:
			r.long = append(r.long, part...)
			return r.long, nil
		case errors.Is(err, bufio.ErrBufferFull):
			r.long = append(r.long, part...)
		case errors.Is(err, io.EOF) && len(r.long)+len(part) > 0:
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}
