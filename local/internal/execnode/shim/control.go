package shim

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// control is this process's end of the socket to the agent.
type control struct {
	fd int

	mu sync.Mutex // one reply at a time
}

// receive reads a request and the open files that came with it.
func (c *control) receive(request *Request) ([]int, error) {
	reader := &fileReader{fd: c.fd}
	err := Decode(reader, request)
	return reader.files, err
}

// send writes a reply. The agent being gone is noticed by receive.
func (c *control) send(reply Reply) {
	message, err := Encode(reply)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(message) > 0 {
		n, err := syscall.Write(c.fd, message)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return
		}
		message = message[n:]
	}
}

// fileReader reads from a socket and keeps the files that travel with the bytes.
type fileReader struct {
	fd    int
	files []int
}

func (f *fileReader) Read(p []byte) (int, error) {
	oob := make([]byte, syscall.CmsgSpace(4*4))
	var n, oobn int
	var err error
	for {
		n, oobn, _, _, err = syscall.Recvmsg(f.fd, p, oob, syscall.MSG_CMSG_CLOEXEC)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return 0, err
	}
	messages, err := syscall.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		return 0, err
	}
	for i := range messages {
		files, err := syscall.ParseUnixRights(&messages[i])
		if err != nil {
			return 0, err
		}
		f.files = append(f.files, files...)
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// lookPath finds the program of a command as execvp does, with the command's own PATH and working directory.
func lookPath(s *Start) (string, error) {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return "", errors.New("no command was given")
	}
	name := s.Argv[0]
	if strings.Contains(name, "/") {
		return name, nil
	}
	var search string
	for _, variable := range s.Env {
		if value, ok := strings.CutPrefix(variable, "PATH="); ok {
			search = value
		}
	}
	for _, dir := range filepath.SplitList(search) {
		candidate := filepath.Join(dir, name)
		if !filepath.IsAbs(candidate) {
			candidate = filepath.Join(s.Dir, candidate)
		}
		info, err := os.Stat(candidate)
		if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return candidate, nil
		}
	}
	return "", errors.New("exec " + strconv.Quote(name) + ": executable file not found in $PATH (" + search + ")")
}
