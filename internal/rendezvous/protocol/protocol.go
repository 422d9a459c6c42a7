// Package protocol is what an agent in a pod and the operator say to each other. It
// needs the standard library alone, so that the agent stays small.
//
// An agent asks, and the operator answers when there is something to do, or after Hold
// that there is nothing new. An agent that gets no answer goes on as it is and asks
// again: an operator that is away stops nobody.
package protocol

import (
	"net"
	"strconv"
	"time"
)

const (
	// Path of the one request that there is, a POST of a Request that is answered with a Response.
	Path = "/v1/rendezvous"
	// Audience of the tokens by which agents prove which pod they are in.
	Audience = "rendezvous.muster.dev"
	// ServerName is the name in the operator's certificate, whatever address leads to it.
	ServerName = "rendezvous.muster.dev"
	// Hold is how long the operator leaves a request unanswered if there is nothing to say.
	Hold = 50 * time.Second
	// MaxRequestBytes is the most that the operator reads of a request.
	MaxRequestBytes = 16 << 10
)

// State is what an agent does.
type State string

const (
	// Waiting agents run nothing, and want to be in the next round.
	Waiting State = "Waiting"
	// Running agents run the command of a round.
	Running State = "Running"
	// Done agents have run it to its end: nobody waits for them any more.
	Done State = "Done"
)

// Request is what an agent says.
type Request struct {
	State State `json:"state"`
	// Join tells one wait for a round from the next: it is drawn anew each time that the
	// agent begins to wait, and stays the same while it runs the round that came of it.
	Join string `json:"join"`
	// Round is the one that the agent runs, or the last that it ran; 0 for none.
	Round int64 `json:"round,omitempty"`
	// Rank and Size are the agent's place in the round that it runs, and how many are in it.
	Rank int `json:"rank,omitempty"`
	Size int `json:"size,omitempty"`
	// Master is the address and port of that round's first member.
	Master string `json:"master,omitempty"`
	// ID is that of the round. Agents from before there were IDs say none: their rounds are told
	// apart by number and master.
	ID string `json:"id,omitempty"`
	// Address at which others reach the pod, and a port that is free there, for the case
	// that the agent comes to be the first in rank.
	Address string `json:"address,omitempty"`
	Port    int    `json:"port,omitempty"`
	// Failure says why the agent waits again; nil if it waits for the first time, or was told to.
	Failure *Failure `json:"failure,omitempty"`
}

// Failure is how a command ended that did not succeed.
type Failure struct {
	ExitCode int `json:"exitCode"`
	// Infrastructure says that it was not the program's own fault.
	Infrastructure bool   `json:"infrastructure,omitempty"`
	Message        string `json:"message,omitempty"`
}

// Response is what the operator answers. An empty one says that there is nothing new.
type Response struct {
	// Round is what a waiting agent is to run.
	Round *Round `json:"round,omitempty"`
	// Over has a running agent stop its command and wait for the next round; it says why.
	Over string `json:"over,omitempty"`
	// Refused has the agent give up: no round will ever come for its pod. It says why.
	Refused string `json:"refused,omitempty"`
}

// Round is one agent's part in a round.
type Round struct {
	// Number grows with each round of a job, from 1.
	Number int64 `json:"number"`
	// ID tells the round from all others of the job, be they of the same number and master: operators
	// that know nothing of each other begin such rounds with who waits on. It means nothing else.
	ID string `json:"id,omitempty"`
	// Rank of the agent among the Size members, from 0.
	Rank int `json:"rank"`
	Size int `json:"size"`
	// MasterAddress and MasterPort are those of the member with rank 0.
	MasterAddress string `json:"masterAddress"`
	MasterPort    int    `json:"masterPort"`
	// Min and Max are how many members a round of the job may have.
	Min int `json:"min"`
	Max int `json:"max"`
}

// Master is where the round's first member is reached, as requests name it.
func (r Round) Master() string {
	return net.JoinHostPort(r.MasterAddress, strconv.Itoa(r.MasterPort))
}
