package validation

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	scheduling "github.com/musterhq/muster/api/volcano/scheduling/v1beta1"
)

func queueing(plural string) schema.GroupVersionResource {
	return kueue.GroupVersion.WithResource(plural)
}

var kinds = map[string]kind{
	"Workload": {resource: queueing("workloads"), namespaced: true, plain: `
apiVersion: kueue.x-k8s.io/v1beta1
kind: Workload
spec:
  queueName: q
  podSets:
  - name: main
    count: 4
    template:
      spec:
        restartPolicy: Never
        containers:
        - {name: c, image: i, resources: {requests: {cpu: "1"}}}
`},
	"JobSet": {resource: jobset.GroupVersion.WithResource("jobsets"), namespaced: true, plain: `
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
spec:
  replicatedJobs:
  - name: leader
    template: &job
      spec:
        parallelism: 2
        completions: 2
        template:
          spec:
            containers:
            - {name: c, image: i}
  - name: workers
    template: *job
`},
	"Job": {resource: batchv1.SchemeGroupVersion.WithResource("jobs"), namespaced: true, plain: `
apiVersion: batch/v1
kind: Job
spec:
  managedBy: example.com/nobody # else the Job controller would write between an attempt's steps
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: c, image: i}
`},
	"Pod": {resource: corev1.SchemeGroupVersion.WithResource("pods"), namespaced: true, plain: `
apiVersion: v1
kind: Pod
spec:
  schedulingGates: [{name: example.com/never}] # else the scheduler would write between an attempt's steps
  containers:
  - {name: c, image: i}
`},
	"GenericJob": {resource: tensorstack.GroupVersion.WithResource("genericjobs"), namespaced: true, plain: `
apiVersion: batch.tensorstack.dev/v1beta1
kind: GenericJob
spec:
  replicaSpecs:
  - type: master
    template: &pods
      spec:
        containers:
        - {name: c, image: i}
  - type: worker
    replicas: 4
    template: *pods
`},
	"VCJob": {resource: volcano.GroupVersion.WithResource("jobs"), namespaced: true, plain: `
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
spec:
  tasks:
  - name: master
    replicas: 1
    template: &pods
      spec:
        containers:
        - {name: c, image: i}
  - name: worker
    replicas: 4
    template: *pods
`},
	"Queue": {resource: scheduling.GroupVersion.WithResource("queues"), plain: `
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
spec: {}
`},
	"Command": {resource: bus.GroupVersion.WithResource("commands"), namespaced: true, plain: `
apiVersion: bus.volcano.sh/v1alpha1
kind: Command
action: AbortJob
target: {apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: job, uid: ""}
`},
	"LatticeJob": {resource: lattice.GroupVersion.WithResource("latticejobs"), namespaced: true, plain: `
apiVersion: lattice.dev/v1alpha1
kind: LatticeJob
spec:
  tasks:
    main:
      replicas: 2
      workload:
        containers:
          c: {image: i, resources: {limits: {cpu: 1, memory: 1Gi}}}
`},
	"TrainingJob": {resource: breezeml.GroupVersion.WithResource("trainingjobs"), namespaced: true, plain: `
apiVersion: breezeml.ai/v1
kind: TrainingJob
spec:
  runPolicy: {}
  minSize: 2
  maxSize: 4
  replicaSpecs:
    template:
      spec:
        containers:
        - {name: c, image: i}
`},
	"ClusterQueue": {resource: queueing("clusterqueues"), plain: `
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
spec:
  resourceGroups:
  - coveredResources: [cpu, memory]
    flavors:
    - name: f
      resources:
      - {name: cpu, nominalQuota: 10}
      - {name: memory, nominalQuota: 10Gi}
`},
	"Cohort": {resource: queueing("cohorts"), plain: `
apiVersion: kueue.x-k8s.io/v1beta1
kind: Cohort
spec:
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - name: f
      resources:
      - {name: cpu, nominalQuota: 10}
`},
	"LocalQueue": {resource: queueing("localqueues"), namespaced: true, plain: `
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
spec: {clusterQueue: cq}
`},
	"ResourceFlavor": {resource: queueing("resourceflavors"), plain: `
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
spec:
  nodeLabels: {example.com/pool: gpu}
`},
	"WorkloadPriorityClass": {resource: queueing("workloadpriorityclasses"), plain: `
apiVersion: kueue.x-k8s.io/v1beta1
kind: WorkloadPriorityClass
value: 10
`},
	"AdmissionCheck": {resource: queueing("admissionchecks"), plain: `
apiVersion: kueue.x-k8s.io/v1beta1
kind: AdmissionCheck
spec: {controllerName: example.com/check}
`},
	"Topology": {resource: queueing("topologies"), plain: `
apiVersion: kueue.x-k8s.io/v1beta1
kind: Topology
spec:
  levels: [{nodeLabel: example.com/rack}, {nodeLabel: kubernetes.io/hostname}]
`},
}
