// Command muster-agent runs inside training pods: as the parent of a container's command, which it starts in each round
// of the job with its rank in that round, or as a sidecar that is a barrier for the other containers of the pod. It
// imports no Kubernetes library, so that it stays small.
package main

import (
	"fmt"
	"os"
)

const usage = `muster-agent runs inside of training pods; docs/use/agent.md has more.

  muster-agent run [--] COMMAND [ARGUMENT]...   run a command in the rounds of its job
  muster-agent sidecar                          be the barrier of the other containers of the pod
  muster-agent ready                            end well once the barrier is lifted
  muster-agent install DIRECTORY                copy itself there
`

// Exit codes of the agent itself.
const (
	codeFailed = 1
	codeUsage  = 2
)

func main() { os.Exit(run(os.Args[1:])) }

func run(arguments []string) int {
	if len(arguments) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return codeUsage
	}
	verb, rest := arguments[0], arguments[1:]
	if len(rest) > 0 && rest[0] == "--" {
		rest = rest[1:]
	}
	switch {
	case verb == "run" && len(rest) > 0:
		return serve(rest)
	case verb == "sidecar" && len(rest) == 0:
		return serve(nil)
	case verb == "ready" && len(rest) == 0:
		return ready()
	case verb == "install" && len(rest) == 1:
		return install(rest[0])
	}
	fmt.Fprint(os.Stderr, usage)
	return codeUsage
}

// logf writes a line to the log of the container, which the command writes to as well.
func logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "muster-agent: "+format+"\n", args...)
}
