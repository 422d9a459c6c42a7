package listwatch

import (
	"bufio"
	"errors"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
)

// lines frames the events of a watch by lines: API servers end each JSON event with a newline, and write none within
// it.
type lines struct{ runtime.Framer }

// NewFrameReader returns a reader. Each Read returns one line, or, with io.ErrShortBuffer, the part of the line that
// fits into the buffer.
func (lines) NewFrameReader(r io.ReadCloser) io.ReadCloser {
	return &lineReader{Closer: r, from: bufio.NewReaderSize(r, 32<<10)}
}

type lineReader struct {
	io.Closer
	from *bufio.Reader
	line []byte // the rest of the current line
	long []byte // holds lines longer than the reader's buffer
}

func (l *lineReader) Read(into []byte) (int, error) {
	if len(l.line) == 0 {
		line, err := l.next()
		if err != nil {
			return 0, err
		}
		l.line = line
	}
	n := copy(into, l.line)
	l.line = l.line[n:]
	if len(l.line) > 0 {
		return n, io.ErrShortBuffer
	}
	return n, nil
}

// next returns the next line, valid until the following call. A last line without a newline is an unexpected end.
func (l *lineReader) next() ([]byte, error) {
	l.long = l.long[:0]
	for {
		part, err := l.from.ReadSlice('\n')
		switch {
		case err == nil && len(l.long) == 0:
			return part, nil
		case err == nil:
			l.long = append(l.long, part...)
			return l.long, nil
		case errors.Is(err, bufio.ErrBufferFull):
			l.long = append(l.long, part...)
		case errors.Is(err, io.EOF) && len(l.long)+len(part) > 0:
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}
