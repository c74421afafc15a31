declare -A LAYERS=([7b]=32 [13b]=40)
set_size() {
    local size=$1
    [[ -v LAYERS[$size] || -n "${LAYERS[$size]:-}" ]] || return 1
    SIZE=(--num-layers "${LAYERS[$size]}")
    case $size in
    7b) SIZE+=(--hidden-size 4096 --num-attention-heads 32) ;;
    13b) SIZE+=(--hidden-size 5120 --num-attention-heads 40) ;;
    esac
}
