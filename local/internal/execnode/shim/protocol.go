package shim

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// Argv0 is the process name that makes a binary which links this package act as a container's first process.
const Argv0 = "muster-container"

// ControlFD is the file descriptor of the socket to the agent in that process.
const ControlFD = 3

// MainCommand is the ID of the command whose end is the end of the container.
const MainCommand = 0

// Request is a message of the agent. Exactly one field is set.
type Request struct {
	Setup  *Setup  `json:",omitempty"`
	Start  *Start  `json:",omitempty"`
	Signal *Signal `json:",omitempty"`
}

// Setup creates the container's view of the machine. It is the first request and is sent once.
type Setup struct {
	// Hostname is set in the process's UTS namespace; empty leaves the machine's.
	Hostname string `json:",omitempty"`
	// Mounts are made in a mount namespace of the process's own. There must be none where it has none.
	Mounts []Mount `json:",omitempty"`
	// Staging is an empty directory of this machine, on which a new root is built when a mount needs one.
	Staging string `json:",omitempty"`
	// MakeDir is a directory inside a mount that is made if it is missing.
	MakeDir string `json:",omitempty"`
	// OwnProcesses is set if the process is the first of a PID namespace: it gets a /proc of its own.
	OwnProcesses bool `json:",omitempty"`
	// OwnMounts is set if the process has a mount namespace of its own.
	OwnMounts bool `json:",omitempty"`
}

// Mount makes the file or directory Source of this machine appear at Target. Both are absolute.
type Mount struct {
	Source   string
	Target   string
	ReadOnly bool `json:",omitempty"`
}

// Start runs a command in the container, with three open files (input, output, errors) that travel with the message.
type Start struct {
	ID   int
	Argv []string
	Env  []string
	// Dir is the working directory, in the container's view.
	Dir string
	// User is who runs the command; nil is whoever runs the agent.
	User *User `json:",omitempty"`
	// Terminal makes the input the controlling terminal of the command.
	Terminal bool `json:",omitempty"`
}

// User is the identity of a command.
type User struct {
	UID, GID uint32
	Groups   []uint32
}

// Signal sends a signal to a command, or SIGKILL to all that runs in the container.
type Signal struct {
	ID     int
	Number int
	All    bool `json:",omitempty"`
}

// Reply is a message of the container's first process. Every Setup is answered by Ready or Failed, every Start by
// Started or Failed; each command that was started ends in one Exited.
type Reply struct {
	ID      int
	Ready   bool    `json:",omitempty"`
	Started bool    `json:",omitempty"`
	Failed  string  `json:",omitempty"`
	Exited  *Status `json:",omitempty"`
}

// Status is how a command ended: by a signal if Signal is not 0, otherwise with Code.
type Status struct {
	Code   int
	Signal int
}

// ExitCode returns the exit code as shells and container runtimes report it: 128+n for signal n.
func (s Status) ExitCode() int {
	if s.Signal != 0 {
		return 128 + s.Signal
	}
	return s.Code
}

const headerBytes = 4

// Encode returns a message as it goes over the socket: its length in four bytes, then JSON.
func Encode(message any) ([]byte, error) {
	body, err := json.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("encoding a message: %w", err)
	}
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, headerBytes+len(body)), uint32(len(body))), body...), nil
}

// Decode reads one message. It gives io.EOF when the peer has gone.
func Decode(from io.Reader, message any) error {
	var header [headerBytes]byte
	if _, err := io.ReadFull(from, header[:]); err != nil {
		return err
	}
	body := make([]byte, binary.BigEndian.Uint32(header[:]))
	if _, err := io.ReadFull(from, body); err != nil {
		return err
	}
	return json.Unmarshal(body, message)
}
