// Package podspec has pure questions and edits over pod templates: what the API
// server would make of a pod, what it requests, what counts of that, why it would be
// refused, and how what admission gave a pod set gets into its pods.
//
// Job APIs, replicas and admission call it. It knows no queue and no job API, and
// changes nothing that it is given, unless it says so.
package podspec
