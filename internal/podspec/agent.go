package podspec

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/musterhq/muster/api/muster"
)

// Agent configures the injection of muster-agent into pods. The zero value means that this operator serves no agents.
type Agent struct {
	// Image is the operator's own image, which has muster-agent in its PATH.
	Image string
	// Server is the host:port at which pods reach the operator's rendezvous, and CA the PEM certificate that they must
	// trust, empty as long as the operator cannot read it.
	Server, CA string
}

// Awaited reports whether the operator will serve agents, and cannot yet.
func (a Agent) Awaited() bool { return a.Enabled() && a.CA == "" }

// Round says in which rounds the agent of a pod takes part.
type Round struct {
	// ID identifies the job's rounds: its UID. It is empty for a JobSet that restarts in place, whose pods are
	// identified by the JobSet's labels.
	ID string
	// Min and Max bound how many pods are in a round.
	Min, Max int32
	// Index is the index of the pod in its job; negative if labels hold it, as with Jobs.
	Index int32
	// Framework is the framework that the job declares, such as pytorch.
	Framework string
	// Container is the container whose command is wrapped; empty for the first.
	Container string
	// MaxRestarts is how often the command may fail through its own fault; nil for the agent's default, negative for no
	// limit.
	MaxRestarts *int32
}

// Sizes returns Min and Max in the form of the pod annotation, such as "2:4".
func (r Round) Sizes() string { return fmt.Sprintf("%d:%d", r.Min, r.Max) }

const (
	agentName  = "muster-agent"
	agentDir   = "/var/run/muster"
	tokenDir   = "/var/run/secrets/muster.dev"
	agentToken = "muster-token"
	// audience equals protocol.Audience of the rendezvous, which this package must not import.
	audience     = "rendezvous.muster.dev"
	tokenSeconds = 3600
	// defaultGraceSeconds is the API server's default for terminationGracePeriodSeconds.
	defaultGraceSeconds = 30
)

// errNoCommand is returned for containers that run the command of their image.
var errNoCommand = errors.New("an agent can be put only round an explicit command: set command, to what the image would run")

// errAgentsDisabled is returned if the operator serves no agents.
var errAgentsDisabled = errors.New("the operator serves no agents: it was started without --rendezvous-address, or its log says why")

// errAgentsAwaited is returned while the operator has no certificates for agents.
var errAgentsAwaited = errors.New("the operator cannot read the Secret with its certificates yet, and tries again: its log says why")

// Enabled reports whether this operator serves agents.
func (a Agent) Enabled() bool { return a.Server != "" }

// Inject returns a copy of the template in which the agent wraps the command of the container. Arguments and the user's
// variables are kept; names reserved for the agent are refused.
func (a Agent) Inject(template corev1.PodTemplateSpec, round Round) (corev1.PodTemplateSpec, error) {
	if !a.Enabled() {
		return template, errAgentsDisabled
	}
	if a.Awaited() {
		return template, errAgentsAwaited
	}
	out := *template.DeepCopy()
	spec := &out.Spec
	at := 0
	if round.Container != "" {
		at = slices.IndexFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == round.Container })
	}
	if at < 0 || at >= len(spec.Containers) {
		return template, fmt.Errorf("there is no container %q to put an agent in", round.Container)
	}
	container := &spec.Containers[at]
	if len(container.Command) == 0 {
		return template, fmt.Errorf("container %s: %w", container.Name, errNoCommand)
	}
	if taken := takenName(spec); taken != "" {
		return template, fmt.Errorf("the name %s is the agent's: rename the container or volume that has it", taken)
	}
	spec.Volumes = append(spec.Volumes, agentVolumes()...)
	installer := corev1.Container{
		Name: agentName, Image: a.Image, Command: []string{agentName, "install", agentDir},
		VolumeMounts:    []corev1.VolumeMount{{Name: agentName, MountPath: agentDir}},
		SecurityContext: container.SecurityContext.DeepCopy(),
		// At most the container's own resources, so that the pod's total does not grow.
		Resources: ProcessorAndMemory(container.Resources),
	}
	spec.InitContainers = slices.Insert(spec.InitContainers, 0, installer)
	container.Command = append([]string{agentDir + "/" + agentName, "run", "--"}, container.Command...)
	container.VolumeMounts = append(container.VolumeMounts,
		corev1.VolumeMount{Name: agentName, MountPath: agentDir},
		corev1.VolumeMount{Name: agentToken, MountPath: tokenDir, ReadOnly: true})
	if path := container.TerminationMessagePath; path != "" && path != corev1.TerminationMessagePathDefault {
		container.Env = append(container.Env, corev1.EnvVar{Name: muster.AgentReportVariable, Value: path})
	}
	container.Env = append(withoutNames(a.variables(round, spec), container.Env), container.Env...)
	a.label(&out, round)
	return out, nil
}

func takenName(spec *corev1.PodSpec) string {
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		if c.Name == agentName {
			return c.Name
		}
	}
	for _, v := range spec.Volumes {
		if v.Name == agentName || v.Name == agentToken {
			return v.Name
		}
	}
	return ""
}

func agentVolumes() []corev1.Volume {
	return []corev1.Volume{
		{Name: agentName, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: agentToken,
			VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{
				ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: audience,
					ExpirationSeconds: ptr.To[int64](tokenSeconds), Path: "token"},
			}}}}},
	}
}

// ProcessorAndMemory returns only CPU and memory of a container's resources, for an init container that is
// added beside it: devices are not needed before the container runs, and a ResourceQuota on limits requires
// limits of every container.
func ProcessorAndMemory(of corev1.ResourceRequirements) corev1.ResourceRequirements {
	pick := func(list corev1.ResourceList) corev1.ResourceList {
		var out corev1.ResourceList
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			if amount, there := list[name]; there {
				if out == nil {
					out = corev1.ResourceList{}
				}
				out[name] = amount
			}
		}
		return out
	}
	return corev1.ResourceRequirements{Requests: pick(of.Requests), Limits: pick(of.Limits)}
}

// withoutNames returns the added variables whose names do not exist yet.
func withoutNames(added, existing []corev1.EnvVar) []corev1.EnvVar {
	return slices.DeleteFunc(added, func(v corev1.EnvVar) bool {
		return slices.ContainsFunc(existing, func(u corev1.EnvVar) bool { return u.Name == v.Name })
	})
}

// variables returns the variables that the agent needs. They come before the own variables of the container, which may
// refer to them.
func (a Agent) variables(round Round, spec *corev1.PodSpec) []corev1.EnvVar {
	grace := ptr.Deref(spec.TerminationGracePeriodSeconds, defaultGraceSeconds)
	out := []corev1.EnvVar{
		{Name: "MUSTER_RENDEZVOUS", Value: a.Server},
		{Name: "MUSTER_RENDEZVOUS_CA", Value: a.CA},
		{Name: "MUSTER_RENDEZVOUS_TOKEN", Value: tokenDir + "/token"},
		{Name: "MUSTER_POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1",
			FieldPath: "status.podIP"}}},
		{Name: "MUSTER_CHECKPOINT_GRACE", Value: strconv.FormatInt(grace, 10)},
	}
	if round.MaxRestarts != nil {
		out = append(out, corev1.EnvVar{Name: "LATTICE_MAX_RESTARTS", Value: strconv.Itoa(int(*round.MaxRestarts))})
	}
	if round.ID == "" {
		return out
	}
	host, port, err := net.SplitHostPort(a.Server)
	if err != nil {
		host, port = a.Server, ""
	}
	autopatch := ""
	if round.Framework == "pytorch" {
		autopatch = "torch"
	}
	return append(out, []corev1.EnvVar{
		{Name: "LATTICE_NNODES", Value: round.Sizes()},
		{Name: "LATTICE_RDZV_ID", Value: round.ID},
		{Name: "LATTICE_RDZV_BACKEND", Value: "muster"},
		{Name: "LATTICE_RDZV_CLIENT_SERVICE_HOST", Value: host},
		{Name: "LATTICE_RDZV_CLIENT_SERVICE_PORT", Value: port},
		{Name: "LATTICE_FRAMEWORK", Value: round.Framework},
		{Name: "LATTICE_AUTOPATCH", Value: autopatch},
		{Name: "LATTICE_CHECKPOINT_TYPE", Value: "local"},
		{Name: "LATTICE_CHECKPOINT_CONFIG", Value: "root=/tmp/" + round.ID},
	}...)
}

// label adds the label and annotations by which the operator finds the pod's rounds.
func (a Agent) label(template *corev1.PodTemplateSpec, round Round) {
	if round.ID == "" {
		return
	}
	template.Labels = Merged(template.Labels, map[string]string{muster.RendezvousLabel: round.ID})
	annotations := map[string]string{muster.RendezvousSizeAnnotation: round.Sizes()}
	if round.Index >= 0 {
		annotations[muster.RendezvousIndexAnnotation] = strconv.Itoa(int(round.Index))
	}
	template.Annotations = Merged(template.Annotations, annotations)
}
