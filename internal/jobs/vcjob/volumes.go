package vcjob

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/replicas"
)

// objects are what must exist before pods: volume claims and the objects of plugins.
type objects struct {
	*view
	plan *jobs.Plan
	// effects caches plugins. What they make of all hosts they make once.
	effects []effect
}

// claimName returns the name of a volume's claim; one that is created gets a default name.
func claimName(job *volcano.Job, i int) string {
	return cmp.Or(job.Spec.Volumes[i].VolumeClaimName, fmt.Sprintf("%s-volume-%d", job.Name, i))
}

// claims returns the writes that create the job's claims, which the job owns.
func (o *objects) claims() []write.Write {
	var out []write.Write
	for i := range o.job.Spec.Volumes {
		if spec := o.job.Spec.Volumes[i].VolumeClaim; spec != nil {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: o.owned(claimName(o.job, i)), Spec: *spec.DeepCopy()}
			out = append(out, createOrWarn(claim))
		}
	}
	return out
}

// mountVolumes mounts the job's volumes into all containers.
func (o *objects) mountVolumes(spec *corev1.PodSpec) {
	for i := range o.job.Spec.Volumes {
		name := fmt.Sprintf("volume-%d", i)
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(o.job, i)}}})
		mount(spec, corev1.VolumeMount{Name: name, MountPath: o.job.Spec.Volumes[i].MountPath})
	}
}

// mount mounts a volume into all containers, including init containers.
func mount(spec *corev1.PodSpec, m corev1.VolumeMount) {
	for c := range podspec.Containers(spec) {
		c.VolumeMounts = append(c.VolumeMounts, m)
	}
}

// createOrWarn returns the write that makes an object for the job.
func createOrWarn(object client.Object) write.Write {
	return write.Create(object).OrWarn(jobs.FailedCreate)
}

// owned returns the metadata of an object that the job owns.
func (v *view) owned(name string) metav1.ObjectMeta {
	return replicas.Owned(v.job, kind, name, nil)
}

// missing returns the writes of what must exist before the pods: claims, and plugin objects. They are
// created once: newer pods show that they exist.
func (o *objects) missing() []write.Write {
	var out []write.Write
	if !o.hasRecord(volumesKey) {
		out = append(out, o.claims()...)
	}
	for _, p := range o.plugins() {
		if p.objects != nil && !o.hasRecord(pluginKey(p.name)) {
			out = append(out, p.objects(o.view)...)
		}
	}
	return out
}

// Keys of status.controlledResources.
const volumesKey = "muster.dev/volumes"

func pluginKey(name string) string { return "plugin-" + name }

func (v *view) hasRecord(key string) bool {
	return v.seen.Job.Status.ControlledResources[key] != ""
}

// forget makes the objects that pods need be created again, before the next pods, if they are
// missing: a user may have deleted one, and pods that need it would never start.
func (o *objects) forget() {
	setRecord(&o.job.Status, volumesKey, "")
	for _, p := range o.plugins() {
		setRecord(&o.job.Status, pluginKey(p.name), "")
	}
}

// record records which objects were created, once newer pods exist.
func (o *objects) record() {
	if !slices.ContainsFunc(o.roster.Replicas, func(r replicas.Replica) bool { return r.UID() != "" }) {
		return
	}
	if len(o.claims()) > 0 {
		setRecord(&o.job.Status, volumesKey, "made")
	}
	for _, p := range o.plugins() {
		if p.objects != nil {
			setRecord(&o.job.Status, pluginKey(p.name), p.name)
		}
	}
}
