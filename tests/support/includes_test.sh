#!/usr/bin/env bash
# includes_test.sh SOURCE: includes follow experiments -> moe -> core, and TBB, yaml-cpp, HDF5 and oneDNN are each
# included by one part of core alone.
set -euo pipefail
cd "$1"
failures=0

# forbid WHAT PATTERN FOLDERS [FILES]: no include of PATTERN below FOLDERS, but in files whose path starts with FILES.
forbid() {
  local found
  # shellcheck disable=SC2086  # one argument a folder
  found=$(grep -rnE --include='*.hpp' --include='*.cpp' "^ *# *include +[<\"]$2" $3 | grep -v "^${4:-no such file}" || true)
  [[ -z $found ]] && return
  printf '%s\n%s\n' "$1" "$found"
  failures=$((failures + 1))
}

[[ -d core && -d moe && -d experiments ]] || { echo "not the project: $1"; exit 1; }
forbid 'core includes from moe or experiments:' '(moelab/)?(moe|experiments)/' core
forbid 'moe includes from experiments:' '(moelab/)?experiments/' moe
forbid 'TBB outside of core/parallel:' '(oneapi/)?tbb/' 'core moe experiments' core/parallel
forbid 'yaml-cpp outside of core/yaml:' 'yaml-cpp' 'core moe experiments' core/yaml
forbid 'HDF5 outside of core/hdf5:' 'hdf5(_hl)?\.h' 'core moe experiments' core/hdf5
forbid 'oneDNN outside of core/gemm:' '(oneapi/)?dnnl' 'core moe experiments' core/gemm
# Sizes and alignments of fixed-size Eigen types depend on the instruction set; the library's headers hold none.
forbid_text() {
  local found
  found=$(grep -rnE --include='*.hpp' "$2" core moe experiments || true)
  [[ -z $found ]] && return
  printf '%s\n%s\n' "$1" "$found"
  failures=$((failures + 1))
}
forbid_text 'fixed-size Eigen types in a header:' \
  'Eigen::((Vector|RowVector|Matrix|Array|Quaternion)[1-4]?[ifd]|(Matrix|Array)<[^>]*, *[0-9])'
exit $((failures > 0))
