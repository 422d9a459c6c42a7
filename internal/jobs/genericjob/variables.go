package genericjob

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/replicas"
)

// variables are the variables that a replica may use in command, args and env of its containers. Any
// other text is kept: it may be meant for Kubernetes or for a shell.
type variables struct {
	job     *tensorstack.GenericJob
	replica *replicas.Replica
	// sizes is the number of replicas of each type.
	sizes map[string]int32
}

// expandAll expands the variables in all containers. The spec must be the caller's own.
func (v variables) expandAll(spec *corev1.PodSpec) {
	for c := range podspec.Containers(spec) {
		for i := range c.Command {
			c.Command[i] = v.expand(c.Command[i])
		}
		for i := range c.Args {
			c.Args[i] = v.expand(c.Args[i])
		}
		for variable := range pointers.To(c.Env) {
			variable.Value = v.expand(variable.Value)
		}
	}
}

// maxName is the most bytes that the name of a variable may have. The longest is service.TYPE[RANK].host, or
// service.port[NAME], in which TYPE and NAME have at most 63. A text that has $( a million times is not searched to its
// end each time.
const maxName = 128

// expand replaces each known $(name). As in Kubernetes, $$ escapes a $; it is kept for Kubernetes to unescape.
func (v variables) expand(text string) string {
	if !strings.Contains(text, "$(") {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); {
		rest := text[i:]
		switch {
		case strings.HasPrefix(rest, "$$"):
			out.WriteString("$$")
			i += 2
			continue
		case strings.HasPrefix(rest, "$("):
			if end := strings.IndexByte(rest[:min(len(rest), len("$(")+maxName+len(")"))], ')'); end > 0 {
				if value, known := v.value(rest[2:end]); known {
					out.WriteString(value)
					i += end + 1
					continue
				}
			}
		}
		out.WriteByte(text[i])
		i++
	}
	return out.String()
}

// value returns the value of a name, and whether the name is known.
func (v variables) value(name string) (string, bool) {
	switch name {
	case "type":
		return v.replica.Group, true
	case "rank":
		return strconv.Itoa(int(v.replica.Index)), true
	}
	if of, ok := between(name, "replicas[", "]"); ok {
		n, known := v.count(of)
		return strconv.Itoa(int(n)), known
	}
	if !hasServices(v.job) {
		return "", false
	}
	if of, ok := between(name, "service.port[", "]"); ok {
		return v.port(of)
	}
	if of, ok := between(name, "service.", "].host"); ok {
		return v.host(of)
	}
	return "", false
}

func (v variables) count(replicaType string) (int32, bool) {
	for spec := range pointers.To(v.job.Spec.ReplicaSpecs) {
		if spec.Type == replicaType {
			if n, known := v.sizes[replicaType]; known {
				return n, true
			}
			return count(spec), true
		}
	}
	return 0, false
}

func (v variables) port(name string) (string, bool) {
	for port := range pointers.To(v.job.Spec.Service.Ports) {
		if port.Name == name {
			return strconv.Itoa(int(port.Port)), true
		}
	}
	return "", false
}

// host returns the host name of a replica's Service; replica is such as "worker[0".
func (v variables) host(replica string) (string, bool) {
	replicaType, text, ok := strings.Cut(replica, "[")
	if !ok {
		return "", false
	}
	rank, err := strconv.ParseInt(text, 10, 32)
	if n, known := v.count(replicaType); err != nil || !known || rank < 0 || int32(rank) >= n {
		return "", false
	}
	return replicas.Name(v.job.Name, replicaType, int32(rank)), true
}

// between returns the text without its prefix and suffix; false if it lacks either.
func between(text, begin, end string) (string, bool) {
	inner, ok := strings.CutPrefix(text, begin)
	if !ok {
		return "", false
	}
	return strings.CutSuffix(inner, end)
}
