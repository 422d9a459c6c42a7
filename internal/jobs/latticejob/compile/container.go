package compile

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
)

// containers compiles the containers of the task, then its sidecars, each in order of name.
func (t *task) containers() error {
	ports := t.containerPorts()
	workload := t.spec.Workload.Containers
	if len(workload) == 0 {
		return errors.New("a task needs a container: workload.containers of it, or of the job's defaults, must have one")
	}
	for name, spec := range inOrder(workload) {
		c, err := t.container(name, &spec.SidecarContainer)
		if err == nil {
			err = t.variables(c, &spec)
		}
		if err == nil {
			err = t.finish(c, &spec.SidecarContainer)
		}
		if err != nil {
			return err
		}
		if c.Ports = ports; t.pod.HostNetwork {
			ports = nil // each container would claim the node's port, and the API server refuses the pod
		}
		t.pod.Containers = append(t.pod.Containers, *c)
	}
	for name, spec := range inOrder(t.spec.Sidecars) {
		if _, taken := workload[name]; taken {
			return fmt.Errorf("invalid container '%s': a sidecar has the name of a container", name)
		}
		if err := t.sidecar(name, &spec); err != nil {
			return err
		}
	}
	return nil
}

// sidecar compiles a sidecar: a container beside the containers of the workload or, with init, one that runs before
// them. Its variables are taken as they are.
func (t *task) sidecar(name string, spec *lattice.SidecarSpec) error {
	c, err := t.container(name, &spec.SidecarContainer)
	if err != nil {
		return err
	}
	for variable, value := range inOrder(spec.Variables) {
		if len(validation.IsRelaxedEnvVarName(variable)) > 0 {
			return wrongVariable(name, variable)
		}
		c.Env = append(c.Env, corev1.EnvVar{Name: variable, Value: value})
	}
	if err := t.finish(c, &spec.SidecarContainer); err != nil {
		return err
	}
	if !ptr.Deref(spec.Init, false) {
		t.pod.Containers = append(t.pod.Containers, *c)
		return nil
	}
	if len(spec.Command) == 0 {
		return fmt.Errorf("invalid container '%s': an init sidecar needs a command", name)
	}
	c.LivenessProbe, c.ReadinessProbe, c.StartupProbe = nil, nil, nil
	t.pod.InitContainers = append(t.pod.InitContainers, *c)
	return nil
}

// renderTimeImage is a placeholder for an image that deployment tools replace before they apply a manifest.
const renderTimeImage = "."

// container compiles a container, without its variables and mounts.
func (t *task) container(name string, spec *lattice.SidecarContainer) (*corev1.Container, error) {
	fail := func(format string, arguments ...any) (*corev1.Container, error) {
		return nil, fmt.Errorf("invalid container '%s': %s", name, fmt.Sprintf(format, arguments...))
	}
	switch {
	case len(validation.IsDNS1123Label(name)) > 0:
		return fail("its name must be a DNS label")
	case spec.Image == renderTimeImage:
		return fail("its image is to be put in before it is applied: neither config.image.%s nor config.image is known here", name)
	case spec.Image == "" || strings.ContainsAny(spec.Image, " \t\r\n$`;|&<>(){}'\"\\*?!"):
		return fail("image must be the name of an image, without spaces and characters of a shell")
	case len(spec.Command) > 0 && !path.IsAbs(spec.Command[0]):
		return fail("command[0] must be an absolute path, not '%s'", shortened(spec.Command[0]))
	}
	c := &corev1.Container{
		Name: name, Image: spec.Image, ImagePullPolicy: pullPolicy(spec.Image),
		Command: spec.Command, Args: spec.Args, WorkingDir: spec.WorkingDir,
		Resources:       ResourcesOf(spec.Resources),
		SecurityContext: securityOf(spec.Security),
	}
	for _, p := range []struct {
		what string
		from *lattice.Probe
		to   **corev1.Probe
	}{{"livenessProbe", spec.LivenessProbe, &c.LivenessProbe}, {"readinessProbe", spec.ReadinessProbe, &c.ReadinessProbe},
		{"startupProbe", spec.StartupProbe, &c.StartupProbe}} {
		if p.from != nil && (p.from.HTTPGet == nil) == (p.from.Exec == nil) {
			return fail("%s must have one of httpGet and exec", p.what)
		}
		*p.to = probeOf(p.from)
	}
	return c, nil
}

// finish compiles the files and volumes of a container. Their paths must not be nested: below a mounted
// file there can be no directory.
func (t *task) finish(c *corev1.Container, spec *lattice.SidecarContainer) error {
	paths := slices.AppendSeq(slices.Collect(maps.Keys(spec.Files)), maps.Keys(spec.Volumes))
	slices.Sort(paths)
	for at := range inOrder(spec.Files) {
		if _, both := spec.Volumes[at]; both {
			return fmt.Errorf("invalid container '%s': '%s' is a file and a volume", c.Name, at)
		}
		if i, _ := slices.BinarySearch(paths, at+"/"); i < len(paths) && strings.HasPrefix(paths[i], at+"/") {
			return fmt.Errorf("invalid container '%s': '%s' is a file, and cannot hold '%s'", c.Name, shortened(at),
				shortened(paths[i]))
		}
	}
	if err := t.files(c, spec.Files); err != nil {
		return err
	}
	return t.mount(c, spec.Volumes)
}

// variables compiles the environment: plain values come from a ConfigMap, values with secrets never do.
func (t *task) variables(c *corev1.Container, spec *lattice.ContainerSpec) error {
	plain := map[string]string{}
	mixed := map[string]*rendering{}
	for name, value := range inOrder(spec.Variables) {
		if len(validation.IsConfigMapKey(name)) > 0 || len(validation.IsEnvVarName(name)) > 0 {
			return wrongVariable(c.Name, name)
		}
		what := fmt.Sprintf("variable '%s'", name)
		x, err := t.expandText(what, value, expand)
		if err != nil {
			return err
		}
		switch ref := x.single(); {
		case !x.secret():
			plain[name] = x.plain
		case ref != nil:
			c.Env = append(c.Env, corev1.EnvVar{Name: name,
				ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
					LocalObjectReference: corev1.LocalObjectReference{Name: t.secretName(ref.secret)}, Key: ref.key}}})
		default:
			provider, err := storeOf(&x)
			if err != nil {
				return fmt.Errorf("template error: %s %w", what, err)
			}
			if mixed[provider] == nil {
				mixed[provider] = newRendering(provider)
			}
			mixed[provider].put(name, &x)
		}
	}
	return t.envFrom(c, spec, plain, mixed)
}

func wrongVariable(container, name string) error {
	return fmt.Errorf("invalid container '%s': '%s' cannot be the name of a variable", container, shortened(name))
}

// maxVariables is how many bytes of values a ConfigMap or Secret of a container's variables may hold.
const maxVariables = 1 << 20

// envFrom adds the objects that hold the container's variables.
func (t *task) envFrom(c *corev1.Container, spec *lattice.ContainerSpec, plain map[string]string,
	mixed map[string]*rendering) error {
	name := fmt.Sprintf("%s-%s-env", t.full, c.Name)
	fromSecret := func(name string) {
		secret := &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}
		c.EnvFrom = append(c.EnvFrom, corev1.EnvFromSource{SecretRef: secret})
	}
	for _, resource := range spec.EnvFrom {
		d := t.resources[resource]
		if d == nil || d.Type != lattice.SecretResource {
			return fmt.Errorf("container '%s' env_from references '%s' which is not a type: secret resource", c.Name, resource)
		}
		fromSecret(t.secretName(d))
	}
	bytes := 0
	for _, value := range plain {
		bytes += len(value)
	}
	for _, r := range mixed {
		bytes = max(bytes, r.bytes)
	}
	if bytes > maxVariables {
		return fmt.Errorf("invalid container '%s': its variables have more than %d bytes together: use files or a volume",
			c.Name, maxVariables)
	}
	if len(plain) > 0 {
		t.addConfigMap(name, plain)
		variables := &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}
		c.EnvFrom = append(c.EnvFrom, corev1.EnvFromSource{ConfigMapRef: variables})
	}
	for i, provider := range slices.Sorted(maps.Keys(mixed)) {
		external := name + "-eso"
		if len(mixed) > 1 {
			external = fmt.Sprintf("%s-%d", external, i)
		}
		t.render(external, mixed[provider])
		fromSecret(external)
	}
	return nil
}

// containerPorts returns the ports of every container of the task. Two service ports may have the same
// target.
func (t *task) containerPorts() []corev1.ContainerPort {
	var out []corev1.ContainerPort
	for name, port := range inOrder(portsOf(t.spec.Workload.Service)) {
		number, protocol := ptr.Deref(port.TargetPort, port.Port), cmp.Or(port.Protocol, corev1.ProtocolTCP)
		if !slices.ContainsFunc(out,
			func(p corev1.ContainerPort) bool { return p.ContainerPort == number && p.Protocol == protocol }) {
			out = append(out, corev1.ContainerPort{Name: name, ContainerPort: number, Protocol: protocol})
		}
	}
	return out
}

// pullPolicy returns Always for an image whose tag may change its meaning.
func pullPolicy(image string) corev1.PullPolicy {
	if strings.Contains(image, "@") {
		return corev1.PullIfNotPresent
	}
	_, tag, tagged := strings.Cut(image[strings.LastIndexByte(image, '/')+1:], ":")
	if !tagged || tag == "latest" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// ResourcesOf returns what a container asks for, nothing if r is nil.
func ResourcesOf(r *lattice.ResourceRequirements) corev1.ResourceRequirements {
	if r == nil {
		return corev1.ResourceRequirements{}
	}
	return corev1.ResourceRequirements{Requests: amounts(r.Requests), Limits: amounts(r.Limits)}
}

func amounts(q *lattice.ResourceQuantity) corev1.ResourceList {
	if q == nil {
		return nil
	}
	out := corev1.ResourceList{}
	if q.CPU != nil {
		out[corev1.ResourceCPU] = *q.CPU
	}
	if q.Memory != nil {
		out[corev1.ResourceMemory] = *q.Memory
	}
	return out
}

func probeOf(p *lattice.Probe) *corev1.Probe {
	if p == nil {
		return nil
	}
	out := &corev1.Probe{
		InitialDelaySeconds: ptr.Deref(p.InitialDelaySeconds, 0), PeriodSeconds: p.PeriodSeconds,
		TimeoutSeconds:   p.TimeoutSeconds,
		FailureThreshold: p.FailureThreshold, SuccessThreshold: p.SuccessThreshold,
	}
	if p.Exec != nil {
		out.Exec = &corev1.ExecAction{Command: p.Exec.Command}
		return out
	}
	get := &corev1.HTTPGetAction{Path: p.HTTPGet.Path, Port: intstr.FromInt32(p.HTTPGet.Port), Scheme: p.HTTPGet.Scheme,
		Host: p.HTTPGet.Host}
	for _, h := range p.HTTPGet.HTTPHeaders {
		get.HTTPHeaders = append(get.HTTPHeaders, corev1.HTTPHeader{Name: h.Name, Value: h.Value})
	}
	out.HTTPGet = get
	return out
}
