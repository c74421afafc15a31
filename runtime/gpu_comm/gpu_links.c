/* gpu_links.c: what both ways of communication do alike. */
#include "runtime/gpu_comm/gpu_links.h"

void fr_gpu_links_destroy(fr_gpu_links *links)
{
    if (links != NULL)
        links->ops->destroy(links);
}
