package vcjob

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

// claimName returns the name of a volume's claim; one that is created gets a default name.
func claimName(job *volcano.Job, i int) string {
	return cmp.Or(job.Spec.Volumes[i].VolumeClaimName, fmt.Sprintf("%s-volume-%d", job.Name, i))
}

// claims returns the writes that create the job's claims, which the job owns.
func (pl *planner) claims() []jobs.Write {
	var out []jobs.Write
	for i := range pl.job.Spec.Volumes {
		if spec := pl.job.Spec.Volumes[i].VolumeClaim; spec != nil {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: pl.owned(claimName(pl.job, i)), Spec: *spec.DeepCopy()}
			out = append(out, jobs.Create(claim).OrWarn(jobs.FailedCreate))
		}
	}
	return out
}

// mountVolumes mounts the job's volumes into all containers.
func (pl *planner) mountVolumes(spec *corev1.PodSpec) {
	for i := range pl.job.Spec.Volumes {
		name := fmt.Sprintf("volume-%d", i)
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(pl.job, i)}}})
		mount(spec, corev1.VolumeMount{Name: name, MountPath: pl.job.Spec.Volumes[i].MountPath})
	}
}

// mount mounts a volume into all containers, including init containers.
func mount(spec *corev1.PodSpec, m corev1.VolumeMount) {
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			list[i].VolumeMounts = append(list[i].VolumeMounts, m)
		}
	}
}

// owned returns the metadata of an object that the job owns.
func (pl *planner) owned(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: pl.job.Namespace, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(pl.job, kind)}}
}

// objects returns the writes of what must exist before the pods: claims, and plugin objects. They are
// created once: newer pods show that they exist.
func (pl *planner) objects() []jobs.Write {
	var out []jobs.Write
	if !pl.hasRecord(volumesKey) {
		out = append(out, pl.claims()...)
	}
	for _, p := range pl.plugins() {
		if p.objects != nil && !pl.hasRecord(pluginKey(p.name)) {
			out = append(out, p.objects(pl)...)
		}
	}
	return out
}

// Keys of status.controlledResources.
const volumesKey = "muster.dev/volumes"

func pluginKey(name string) string { return "plugin-" + name }

func (pl *planner) hasRecord(key string) bool {
	return pl.seen.Job.Status.ControlledResources[key] != ""
}

// clearObjectRecords makes the objects that pods need be created again, before the next pods, if they are
// missing: a user may have deleted one, and pods that need it would never start.
func (pl *planner) clearObjectRecords() {
	setRecord(&pl.job.Status, volumesKey, "")
	for _, p := range pl.plugins() {
		setRecord(&pl.job.Status, pluginKey(p.name), "")
	}
}

// recordObjects records which objects were created, once newer pods exist.
func (pl *planner) recordObjects() {
	if !slices.ContainsFunc(pl.roster.Replicas, func(r replicas.Replica) bool { return r.UID() != "" }) {
		return
	}
	if len(pl.claims()) > 0 {
		setRecord(&pl.job.Status, volumesKey, "made")
	}
	for _, p := range pl.plugins() {
		if p.objects != nil {
			setRecord(&pl.job.Status, pluginKey(p.name), p.name)
		}
	}
}
