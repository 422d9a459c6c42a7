package vcjob

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/replicas"
)

// plugin is a plugin and the arguments that it takes.
type plugin struct {
	name string
	// needs are the plugins that it requires.
	needs []string
	// roles are the arguments that name tasks which must exist.
	roles []string
	// defaults are the known arguments with their default values.
	defaults map[string]string
	// distinct are the arguments whose values must differ.
	distinct []string
	// alsoCalled maps alternative names of arguments to their names.
	alsoCalled map[string]string
	// with returns the plugin's effect for the arguments.
	with func(arguments map[string]string) effect
}

// effect is what a plugin does to one job.
type effect struct {
	name string
	// change changes the pod spec of a replica, which the caller owns.
	change func(job *volcano.Job, r *replicas.Replica, spec *corev1.PodSpec)
	// annotate returns the annotations of a replica's pod that its template may override; nil for none.
	annotate func(job *volcano.Job, r *replicas.Replica, spec *corev1.PodSpec) map[string]string
	// ports returns the ports on which the pods of a task listen; nil for none.
	ports func(job *volcano.Job, task string) []corev1.ContainerPort
	// objects returns the writes of objects that must exist before pods; nil for none.
	objects func(v *view) []write.Write
	// lists returns the variables of pods that list host names; nil for none.
	lists func(job *volcano.Job) []hostList
}

// hostList is a variable that lists the host names of tasks.
type hostList struct {
	variable string
	tasks    []string
	// perHost is how many bytes the variable has for each host beside its name, and others how many it has beside its
	// hosts.
	perHost, others int
	// remedy says how the user does without the variable, "" if the plugin is of no use without it.
	remedy string
}

// known are all plugins, in the order in which they change pods.
var known = []plugin{
	{name: "env", with: env},
	{name: "svc", with: svc, defaults: map[string]string{
		"publish-not-ready-addresses": "false", "disable-network-policy": "false", "inject-hosts-env": "true"}},
	{name: "ssh", with: ssh, defaults: map[string]string{
		"ssh-key-file-path": rootsKeys, "ssh-private-key": "", "ssh-public-key": "", "ssh-port": "22", "no-root": "false"}},
	{name: "pytorch", with: pytorch, needs: []string{"svc"}, defaults: map[string]string{
		"master": "master", "worker": "worker", "port": "23456",
		"wait-master-enabled": "false", "wait-master-timeout": "300", "wait-master-image": "busybox:1.36.1"}},
	{name: "tensorflow", with: tensorflow, needs: []string{"svc"}, defaults: map[string]string{
		"ps": "ps", "worker": "worker", "chief": "chief", "evaluator": "evaluator", "port": "2222"}},
	{name: "mpi", with: mpi, needs: []string{"svc", "ssh"}, roles: []string{"master", "worker"},
		defaults: map[string]string{"master": "master", "worker": "worker", "port": "22"}},
	{name: "ray", with: ray, needs: []string{"svc"}, roles: []string{"head"}, defaults: map[string]string{
		"head": "head", "worker": "worker", "headContainer": "head", "workerContainer": "worker",
		"port": "6379", "dashboardPort": "8265", "clientPort": "10001"},
		distinct:   []string{"port", "dashboardPort", "clientPort"},
		alsoCalled: map[string]string{"clientServerPort": "clientPort"}},
	{name: "hcclrank", with: hcclrank, defaults: map[string]string{"master": "master", "worker": "worker"}},
}

// plugins returns the job's plugins, and the plugins that they require.
func (o *objects) plugins() []effect {
	if o.effects == nil {
		o.effects = pluginsOf(o.job)
	}
	return o.effects
}

func pluginsOf(job *volcano.Job) []effect {
	wanted := map[string]bool{}
	for _, p := range known {
		if _, named := job.Spec.Plugins[p.name]; named {
			wanted[p.name] = true
			for _, name := range p.needs {
				wanted[name] = true
			}
		}
	}
	var out []effect
	for _, p := range known {
		if wanted[p.name] {
			arguments, _ := p.read(job.Spec.Plugins[p.name])
			e := p.with(arguments)
			e.name = p.name
			out = append(out, e)
		}
	}
	return out
}

// read returns the values of all arguments, and what is wrong with the given ones.
func (p plugin) read(given []string) (map[string]string, string) {
	out := maps.Clone(p.defaults)
	if out == nil {
		out = map[string]string{}
	}
	for i := 0; i < len(given); i++ {
		name, value, hasValue := strings.Cut(strings.TrimLeft(given[i], "-"), "=")
		name = cmp.Or(p.alsoCalled[name], name)
		before, isKnown := p.defaults[name]
		if !isKnown {
			return out, fmt.Sprintf("spec.plugins.%s: %s is not an argument%s", p.name, argumentLabel(given, i), p.arguments())
		}
		isFlag := before == "true" || before == "false"
		switch {
		case !hasValue && isFlag:
			value = "true"
		case !hasValue && i+1 < len(given):
			i++
			value = given[i]
		case !hasValue:
			return out, fmt.Sprintf("spec.plugins.%s: %s has no value", p.name, argumentLabel(given, i))
		}
		if value == "" && (strings.HasSuffix(name, "image") || strings.HasSuffix(name, "path")) {
			return out, fmt.Sprintf("spec.plugins.%s: %s must not be empty", p.name, name)
		}
		if _, err := strconv.ParseBool(value); isFlag && err != nil {
			return out, fmt.Sprintf("spec.plugins.%s: %s must be true or false", p.name, name)
		}
		if port, err := strconv.ParseUint(value, 10, 16); strings.HasSuffix(strings.ToLower(name), "port") &&
			(err != nil || port == 0) {
			return out, fmt.Sprintf("spec.plugins.%s: %s must be a port, from 1 to 65535", p.name, name)
		}
		if n, err := strconv.ParseUint(value, 10, 31); strings.HasSuffix(name, "timeout") && (err != nil || n == 0) {
			return out, fmt.Sprintf("spec.plugins.%s: %s must be a number of seconds, 1 at least", p.name, name)
		}
		out[name] = value
	}
	return out, ""
}

// argumentName matches valid names of arguments.
var argumentName = regexp.MustCompile(`^--?[A-Za-z][A-Za-z0-9_.-]{0,39}$`)

// argumentLabel returns how messages refer to an argument: by name only. A value, or text that is no valid
// name, may be a secret, which must not appear in an event.
func argumentLabel(given []string, i int) string {
	if name, _, _ := strings.Cut(given[i], "="); argumentName.MatchString(name) {
		return strconv.Quote(name)
	}
	return fmt.Sprintf("argument %d", i+1)
}

func (p plugin) arguments() string {
	if len(p.defaults) == 0 {
		return ": the plugin has none"
	}
	return "; the arguments are --" + strings.Join(slices.Sorted(maps.Keys(p.defaults)), ", --")
}

// invalidArguments returns what is wrong with the plugins, "" if nothing is.
func invalidArguments(job *volcano.Job) string {
	for _, name := range slices.Sorted(maps.Keys(job.Spec.Plugins)) {
		i := slices.IndexFunc(known, func(p plugin) bool { return p.name == name })
		if i < 0 {
			return fmt.Sprintf("unable to find job plugin: %s", name)
		}
		arguments, problem := known[i].read(job.Spec.Plugins[name])
		if problem != "" {
			return problem
		}
		for n, one := range known[i].distinct {
			for _, other := range known[i].distinct[:n] {
				if arguments[one] == arguments[other] {
					return fmt.Sprintf("spec.plugins.%s: %s and %s must differ", name, other, one)
				}
			}
		}
		for _, role := range known[i].roles {
			if !slices.ContainsFunc(groups(job), func(g replicas.Group) bool { return g.Name == arguments[role] }) {
				return fmt.Sprintf("spec.plugins.%s: there is no task %s, which plays the %s: name the one that does with --%s",
					name, arguments[role], role, role)
			}
		}
	}
	return ""
}

// maxVariable is how many bytes Linux lets a variable have when a program is started, with its name and the zero byte
// after it.
const maxVariable = 128 << 10

// tooManyHosts returns which plugin would give pods a list of host names with which no program starts, "" if none
// would. What svc lists is in other plugins, too, which are therefore looked at first.
func tooManyHosts(job *volcano.Job) string {
	for _, p := range slices.Backward(pluginsOf(job)) {
		if p.lists == nil {
			continue
		}
		for _, list := range p.lists(job) {
			if pods, bytes := list.size(job); bytes > maxVariable {
				return fmt.Sprintf("spec.plugins.%s: the host names of %d pods do not fit into the variable %s, which has %d bytes at most%s",
					p.name, pods, list.variable, maxVariable, list.remedy)
			}
		}
	}
	return ""
}

// size returns how many hosts the variable lists, and its size as Linux counts it.
func (h hostList) size(job *volcano.Job) (hosts, bytes int) {
	bytes = len(h.variable+"=") + h.others
	for _, task := range h.tasks {
		n := hostCount(job, task)
		hosts += n
		bytes += n * (len(hostOf(job, task, 0)) + h.perHost)
		for longer := 10; longer < n; longer *= 10 { // an index has one more digit from 10 on, from 100 on, and so on
			bytes += n - longer
		}
	}
	return hosts, bytes
}

// invalidName returns why the job's name is invalid for its plugins, which use it for a Service and for
// volumes; "" if it is valid.
func invalidName(job *volcano.Job, facts jobs.Facts) string {
	for _, p := range pluginsOf(job) {
		if p.objects == nil {
			continue
		}
		if len(validation.IsDNS1123Label(job.Name)) > 0 {
			return fmt.Sprintf("spec.plugins.%s: the name of the Job must be a DNS label, without dots, for what the plugin makes is called after it", p.name)
		}
		if (p.name == "svc" || p.name == "ray") && facts.StrictServiceNames && len(validation.IsDNS1035Label(job.Name)) > 0 {
			return fmt.Sprintf("spec.plugins.%s: the name of the Job must begin with a letter on this cluster, for the plugin makes a Service that is called after it, and Kubernetes before 1.36 refuses other names of Services", p.name)
		}
		if most := validation.DNS1123LabelMaxLength - len(headServiceName(job)) + len(job.Name); p.name == "ray" &&
			len(job.Name) > most {
			return fmt.Sprintf("spec.plugins.ray: the name of the Job must have at most %d characters, for there is a Service <job>-head-svc", most)
		}
	}
	return ""
}

// setEnv sets a variable unless the container has it: the user's value wins.
func setEnv(c *corev1.Container, name, value string) {
	addEnv(c, corev1.EnvVar{Name: name, Value: value})
}

// addEnv adds a variable as setEnv does, with a value that may be read from an object.
func addEnv(c *corev1.Container, v corev1.EnvVar) {
	if !slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == v.Name }) {
		c.Env = append(c.Env, v)
	}
}

// taskReplicas returns the number of pods of the task, 0 if it does not exist.
func taskReplicas(job *volcano.Job, task string) int32 {
	for name, spec := range tasksIn(job) {
		if name == task {
			return countOf(spec)
		}
	}
	return 0
}

// hostOf returns the host name by which other pods of the job reach a pod.
func hostOf(job *volcano.Job, task string, index int32) string {
	name := replicas.Name(job.Name, task, index)
	for of, spec := range tasksIn(job) {
		if t := &spec.Template.Spec; of == task {
			if t.Hostname != "" {
				name = t.Hostname
			}
			if t.Subdomain != "" {
				return name + "." + t.Subdomain
			}
		}
	}
	return name + "." + job.Name
}

// hostsOf returns the host names of all pods of the task; a single one if its template sets the host name.
func hostsOf(job *volcano.Job, task string) []string {
	out := make([]string, hostCount(job, task))
	for index := range out {
		out[index] = hostOf(job, task, int32(index))
	}
	return out
}

// hostCount returns how many host names the pods of the task have.
func hostCount(job *volcano.Job, task string) int {
	n := int(taskReplicas(job, task))
	if n > 1 && hostOf(job, task, 0) == hostOf(job, task, 1) {
		return 1
	}
	return n
}

// env gives pods their index in their task.
func env(map[string]string) effect {
	return effect{change: func(_ *volcano.Job, r *replicas.Replica, spec *corev1.PodSpec) {
		index := strconv.Itoa(int(r.Index))
		for c := range podspec.Containers(spec) {
			setEnv(c, "VK_TASK_INDEX", index)
			setEnv(c, "VC_TASK_INDEX", index)
		}
	}}
}
