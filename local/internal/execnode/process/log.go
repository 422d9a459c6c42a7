package process

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// logTimeFormat has a fixed width, as readers of the format expect.
const logTimeFormat = "2006-01-02T15:04:05.000000000Z07:00"

// longestLogLine is the length at which lines are split, as container runtimes do.
const longestLogLine = 16 << 10

// logFile is the log of one container in the format of the container runtime interface: a time, a stream and a tag
// before each line. Safe for concurrent use.
type logFile struct {
	path string

	mu   sync.Mutex
	file *os.File
	line []byte
}

func openLog(path string) (*logFile, error) {
	l := &logFile{path: path}
	if err := l.reopen(); err != nil {
		return nil, err
	}
	return l, nil
}

// reopen opens the file at the path again, after a rotation has moved the old one away.
func (l *logFile) reopen() error {
	if err := os.MkdirAll(filepath.Dir(l.path), 0o755); err != nil {
		return fmt.Errorf("making the directory of a container log: %w", err)
	}
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return fmt.Errorf("opening a container log: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		l.file.Close()
	}
	l.file = file
	return nil
}

func (l *logFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.file.Close()
}

// copy writes the output of a container on one stream until the stream is closed.
func (l *logFile) copy(stream runtimeapi.LogStreamType, from io.Reader) {
	reader := bufio.NewReaderSize(from, longestLogLine)
	for {
		line, err := reader.ReadSlice('\n')
		switch {
		case err == nil:
			l.write(stream, runtimeapi.LogTagFull, line[:len(line)-1])
		case errors.Is(err, bufio.ErrBufferFull):
			l.write(stream, runtimeapi.LogTagPartial, line)
		default:
			if len(line) > 0 {
				l.write(stream, runtimeapi.LogTagFull, line)
			}
			return
		}
	}
}

func (l *logFile) write(stream runtimeapi.LogStreamType, tag runtimeapi.LogTag, text []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := time.Now().UTC().AppendFormat(l.line[:0], logTimeFormat)
	line = append(line, ' ')
	line = append(line, stream...)
	line = append(line, ' ')
	line = append(line, tag...)
	line = append(line, ' ')
	line = append(line, text...)
	l.line = append(line, '\n')
	// As with other runtimes, a full disk loses log lines but does not fail the container.
	l.file.Write(l.line)
}
